// A model that is trained with a loss of pairs: each micro-batch twice, with other dropout.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kRows, testing::kWidth, testing::relative_distance;

Seq2SeqOptions options_of(const EncoderChoice& encoder, const DecoderChoice& decoder) {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.encoder = encoder;
  options.decoder = decoder;
  options.dropout = 0.3;
  return options;
}

template <class Light>
Light light_part() {
  return {.num_layers = 1, .num_heads = 2, .kernels = {3}, .ffn_dim = 24, .dropout = 0.3};
}

std::vector<std::pair<std::string, Seq2SeqOptions>> one_of_each_kind() {
  const StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  return {{"transformer", options_of(stack, stack)},
          {"lstm", options_of(LstmEncoderOptions{.num_layers = 1, .dropout = 0.3},
                              LstmDecoderOptions{.num_layers = 1, .dropout = 0.3})},
          {"conv", options_of(ConvEncoderOptions{.num_layers = 1, .dropout = 0.3},
                              ConvDecoderOptions{.num_layers = 1, .dropout = 0.3})},
          {"light_conv",
           options_of(light_part<LightEncoderOptions>(), light_part<LightDecoderOptions>())},
          {"dynamic_conv",
           options_of(light_part<DynamicEncoderOptions>(), light_part<DynamicDecoderOptions>())}};
}

const ModelSetup kSetup{.src_rows = kRows,
                        .tgt_rows = kRows,
                        .num_tgt_classes = kRows,
                        .src_specials = stretto::testing::kSpecials,
                        .tgt_specials = stretto::testing::kSpecials};

/// A loss that keeps the rows that it is given.
nn::OutputLoss keeper(at::Tensor& rows) {
  return [&rows](const at::Tensor& x, const at::Tensor& /*weight*/, const at::Tensor& /*targets*/,
                 int64_t /*classes*/, const at::Tensor& /*bias*/, double /*softcap*/) {
    rows = x.detach();
    return kernels::CrossEntropy{.loss_sum = x.sum(), .nll_sum = x.detach().sum()};
  };
}

TEST(TwoPasses, PackedTwiceTheFirstCopyIsThatOfOnePassAndAllMasksDiffer) {
  const data::Batch batch = first_batch();
  const nn::PackedRows once = pack(data::source(batch), &batch.sample_ids, at::kCPU),
                       twice = pack_twice(data::source(batch), batch.sample_ids, at::kCPU);
  const int64_t tokens = once.ids.size(0);
  for (const auto& [one, two] :
       {std::pair{once.ids, twice.ids}, std::pair{once.positions, twice.positions}}) {
    EXPECT_TRUE(at::equal(two, at::cat({one, one})));
  }
  EXPECT_TRUE(at::equal(twice.row_keys.slice(0, 0, tokens), once.row_keys));
  const int64_t* keys = twice.row_keys.const_data_ptr<int64_t>();
  EXPECT_EQ(std::set<int64_t>(keys, keys + 2 * tokens).size(), static_cast<size_t>(2 * tokens));
  EXPECT_EQ(twice.offsets.max_length, once.offsets.max_length);
  const at::Tensor bounds = once.offsets.values;
  EXPECT_TRUE(at::equal(twice.offsets.values, at::cat({bounds, bounds.slice(0, 1) + tokens})));
}

TEST(TwoPasses, TheFirstHasTheMasksOfASinglePassAndTheSecondOthers) {
  const data::Batch batch = first_batch();
  const ForwardContext context{.training = true, .dropout_key = 99};
  for (const auto& [name, options] : one_of_each_kind()) {
    SCOPED_TRACE(name);
    at::Tensor one, two;
    make_model(options, kSetup, keeper(one))->loss(batch, context);
    const LossOutput sums =
        make_model(options, kSetup, keeper(one), keeper(two))->loss(batch, context);
    const int64_t tokens = data::target(batch).num_rows();
    EXPECT_EQ(sums.target_tokens, tokens);
    ASSERT_EQ(two.size(0), 2 * tokens);
    EXPECT_LT(relative_distance(two.slice(0, 0, tokens), one), 1e-5);
    EXPECT_GT(relative_distance(two.slice(0, tokens), one), 1e-2);
  }
}

TEST(TwoPasses, ThereIsOneWhereNobodyTrains) {
  at::Tensor one, two;
  const auto model = make_model(one_of_each_kind()[0].second, kSetup, keeper(one), keeper(two));
  model->loss(first_batch(), {});
  EXPECT_EQ(one.size(0), data::target(first_batch()).num_rows());
  EXPECT_FALSE(two.defined());
}

TEST(TwoPasses, WithoutDropoutTheyAreNotApart) {
  for (const double dropout : {0.0, 0.3}) {
    Seq2SeqOptions options = one_of_each_kind()[0].second;
    options.dropout = dropout;
    const losses::CrossEntropyOptions loss{.label_smoothing = 0.1, .r_drop = 5};
    const auto pairs =
        make_model(options, kSetup, losses::make_loss(loss), losses::make_pair_loss(loss));
    const auto single = make_model(options, kSetup, losses::make_loss(loss));
    const ForwardContext context{.training = true, .dropout_key = 7};
    const LossOutput two = pairs->loss(first_batch(), context),
                     one = single->loss(first_batch(), context);
    EXPECT_FALSE(one.kl_sum.defined());
    if (dropout > 0) {
      EXPECT_GT(two.kl_sum.item<double>(), 1e-3);
      continue;
    }
    EXPECT_NEAR(two.kl_sum.item<double>(), 0, 1e-6);
    EXPECT_NEAR(two.loss_sum.item<double>(), one.loss_sum.item<double>(), 1e-4);
    EXPECT_NEAR(two.nll_sum.item<double>(), one.nll_sum.item<double>(), 1e-4);
  }
}

/// Gradients of the pair are those of two models' worth of rows: a plain formula over all logits.
TEST(TwoPasses, GradientsAreThoseOfThePlainFormulaInDouble) {
  const losses::CrossEntropyOptions loss{.label_smoothing = 0.1, .r_drop = 5};
  const nn::OutputLoss plain = [](const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, int64_t classes,
                                  const at::Tensor& bias, double /*softcap*/) {
    const int64_t n = targets.size(0);
    at::Tensor logits = at::matmul(x, weight.slice(0, 0, classes).t());
    if (bias.defined()) logits = logits + bias.slice(0, 0, classes);
    const at::Tensor log_p = at::log_softmax(logits, 1);
    const at::Tensor p = log_p.slice(0, 0, n), q = log_p.slice(0, n);
    at::Tensor wanted = at::full_like(p, 0.1 / static_cast<double>(classes - 1));
    wanted.scatter_(1, targets.unsqueeze(1), 0.9);
    const at::Tensor kl = (p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum();
    return kernels::CrossEntropy{
        .loss_sum = -(wanted * (p + q)).sum() / 2 + 5.0 / 4 * kl,
        .nll_sum = -(p + q).gather(1, targets.unsqueeze(1)).sum().detach() / 2};
  };
  const auto gradients = [&](const Seq2SeqOptions& options, const nn::OutputLoss& pair) {
    const auto model = make_model(options, kSetup, losses::make_loss(loss), pair);
    model->to(at::kDouble);
    auto parameters = model->named_parameters();
    if (at::Tensor* bias = parameters.find("output.bias"); bias != nullptr) {
      const torch::NoGradGuard no_grad;
      bias->copy_(at::linspace(-1, 2, bias->numel(), at::kDouble));
    }
    model->loss(first_batch(), {.training = true, .dropout_key = 7}).loss_sum.backward();
    std::vector<at::Tensor> all;
    for (const auto& item : parameters) {
      const at::Tensor gradient = item.value().grad();
      EXPECT_TRUE(gradient.defined()) << item.key();
      if (gradient.defined()) all.push_back(gradient.flatten());
    }
    return at::cat(all);
  };
  for (auto& [name, options] : one_of_each_kind()) {
    for (const bool output_bias : {false, true}) {
      SCOPED_TRACE(name + (output_bias ? " with an output bias" : " without an output bias"));
      options.output_bias = output_bias;
      const at::Tensor want = gradients(options, plain);
      EXPECT_LT(relative_distance(gradients(options, losses::make_pair_loss(loss)), want), 1e-10);
      EXPECT_GT(want.norm().item<double>(), 1e-3);
    }
  }
}

}  // namespace
}  // namespace stretto::models
