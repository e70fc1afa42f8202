#include "models/layer_drop.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::second_batch, testing::kRows;

ForwardContext update_of(uint64_t number, uint64_t seed = 1) {
  return {.training = true, .dropout_key = mix64(seed, number)};
}

/// "0": the layer is there, "1": it is left out; bottom first.
std::string left_out(double p, const ForwardContext& context, uint64_t first_site, size_t layers) {
  std::string found;
  for (size_t i = 0; i < layers; ++i) found += is_left_out(p, context, first_site, i) ? '1' : '0';
  return found;
}

TEST(LayerDrop, LeavesOutTheLayersOfThisTable) {
  struct Row {
    uint64_t update;
    std::string encoder, decoder;
  };
  // Seed 1, probability 0.25, six layers a side. A run that is resumed hangs on these.
  const std::vector<Row> table{{1, "000011", "100000"}, {2, "000001", "100000"},
                               {3, "000001", "000001"}, {4, "000001", "001000"},
                               {5, "011010", "100001"}, {6, "101000", "010000"},
                               {7, "010000", "001000"}, {8, "111111", "001001"}};
  for (const Row& row : table) {
    EXPECT_EQ(left_out(0.25, update_of(row.update), kEncoderSites, 6), row.encoder) << row.update;
    EXPECT_EQ(left_out(0.25, update_of(row.update), kDecoderSites, 6), row.decoder) << row.update;
  }
}

TEST(LayerDrop, LeavesOutAsOftenAsItSays) {
  constexpr int kUpdates = 4000;
  for (const double p : {0.05, 0.2, 0.9}) {
    int count = 0, both = 0;
    for (uint64_t update = 0; update < kUpdates; ++update) {
      const std::string found = left_out(p, update_of(update, 3), kEncoderSites, 2);
      count += found[0] == '1' ? 1 : 0;
      both += found == "11" ? 1 : 0;
    }
    // Five standard deviations; one layer's fate tells nothing of another's.
    EXPECT_NEAR(count, p * kUpdates, 5 * std::sqrt(p * (1 - p) * kUpdates));
    EXPECT_NEAR(both, p * p * kUpdates, 5 * std::sqrt(p * p * (1 - p * p) * kUpdates));
  }
}

TEST(LayerDrop, LeavesOutNothingOutsideTrainingAndWithoutAProbability) {
  for (uint64_t update = 1; update < 200; ++update) {
    EXPECT_EQ(left_out(0.0, update_of(update), kEncoderSites, 6), "000000");
    ForwardContext context = update_of(update);
    context.training = false;
    EXPECT_EQ(left_out(0.99, context, kEncoderSites, 6), "000000");
  }
}

/// Pre-norm without dropout, in double: what is there depends on names alone.
std::shared_ptr<Seq2SeqModel> model_of(int64_t encoder_layers, int64_t decoder_layers,
                                       double encoder_drop, double decoder_drop,
                                       bool parallel_residual = false) {
  Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = StackOptions{
      .num_layers = encoder_layers, .num_heads = 4, .ffn_dim = 28, .layer_drop = encoder_drop};
  options.decoder = StackOptions{
      .num_layers = decoder_layers, .num_heads = 2, .ffn_dim = 20, .layer_drop = decoder_drop};
  options.norm = "pre";
  options.dropout = 0;
  options.parallel_residual = parallel_residual;
  auto model = make_model(options,
                          {.src_rows = kRows,
                           .tgt_rows = kRows,
                           .num_tgt_classes = 21,
                           .src_specials = stretto::testing::kSpecials,
                           .tgt_specials = stretto::testing::kSpecials,
                           .seed = 3},
                          losses::make_loss({}));
  model->to(at::kDouble);
  return model;
}

double loss_of(Seq2SeqModel& model, const ForwardContext& context) {
  return model.loss(first_batch(), context).loss_sum.item<double>();
}

/// The first update in which these layers of two are left out.
ForwardContext update_without(double p, const std::string& encoder, const std::string& decoder) {
  for (uint64_t update = 1; update < 100'000; ++update) {
    const ForwardContext context = update_of(update);
    if (left_out(p, context, kEncoderSites, 2) == encoder &&
        left_out(p, context, kDecoderSites, 2) == decoder) {
      return context;
    }
  }
  ADD_FAILURE() << "no update leaves out " << encoder << " and " << decoder;
  return {};
}

// First weights hang on names, so that a model without its second layer is one of a single layer.
TEST(LayerDrop, AModelWithoutALayerIsAsIfItNeverHadIt) {
  constexpr double p = 0.4;
  for (const bool parallel : {false, true}) {
    const auto model = model_of(2, 2, p, p, parallel);
    const auto plain = [&](int64_t encoder_layers, int64_t decoder_layers) {
      return loss_of(*model_of(encoder_layers, decoder_layers, 0, 0, parallel), update_of(1));
    };
    const auto loss = [&](const char* encoder, const char* decoder) {
      return loss_of(*model, update_without(p, encoder, decoder));
    };
    EXPECT_NEAR(loss("00", "00"), plain(2, 2), 1e-10);
    EXPECT_NEAR(loss("01", "00"), plain(1, 2), 1e-10);
    EXPECT_NEAR(loss("00", "01"), plain(2, 1), 1e-10);
    EXPECT_NEAR(loss("01", "01"), plain(1, 1), 1e-10);
    EXPECT_GT(std::abs(plain(1, 2) - plain(2, 2)), 1e-6);
    EXPECT_GT(std::abs(plain(2, 1) - plain(2, 2)), 1e-6);
  }
}

TEST(LayerDrop, EvaluationAndDecodingHaveEveryLayer) {
  const auto model = model_of(2, 2, 0.9, 0.9), plain = model_of(2, 2, 0, 0);
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(loss_of(*model, {}), loss_of(*plain, {}));
  const auto a = model->start(data::source(first_batch()), 1),
             b = plain->start(data::source(first_batch()), 1);
  for (int t = 0; t < 3; ++t) {
    const at::Tensor tokens = at::tensor({2, 5 + t, 7}, at::kLong);
    EXPECT_TRUE(at::equal(a->step(tokens), b->step(tokens)));
  }
  EXPECT_TRUE(
      at::equal(model->alignments(first_batch(), -1)[0], plain->alignments(first_batch(), -1)[0]));
}

std::vector<at::Tensor> gradients_of(Seq2SeqModel& model) {
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : model.parameters()) {
    all.push_back(parameter.grad().defined() ? parameter.grad().flatten().clone()
                                             : at::zeros_like(parameter).flatten());
    parameter.mutable_grad() = at::Tensor();
  }
  return all;
}

TEST(LayerDrop, MicroBatchesOfAnUpdateLeaveOutTheSameLayers) {
  const auto model = model_of(2, 2, 0.5, 0.5);
  for (uint64_t update = 1; update <= 8; ++update) {
    const ForwardContext context = update_of(update);
    model->loss(data::concatenate({first_batch(), second_batch()}), context).loss_sum.backward();
    const at::Tensor whole = at::cat(gradients_of(*model));
    for (const data::Batch& batch : {first_batch(), second_batch()})
      model->loss(batch, context).loss_sum.backward();
    const at::Tensor parts = at::cat(gradients_of(*model));
    EXPECT_LT(testing::relative_distance(parts, whole), 1e-10) << "update " << update;
  }
}

TEST(LayerDrop, GradientsOfALayerThatIsLeftOutAreZeroAndThoseOfTheOthersTheirOwn) {
  constexpr double p = 0.4;
  const auto model = model_of(2, 2, p, p), plain = model_of(1, 2, 0, 0);
  for (at::Tensor& parameter : model->parameters())
    parameter.mutable_grad() = at::zeros_like(parameter);
  model->loss(first_batch(), update_without(p, "01", "00")).loss_sum.backward();
  plain->loss(first_batch(), update_of(1)).loss_sum.backward();
  const auto others = plain->named_parameters();
  for (const auto& item : model->named_parameters()) {
    if (item.key().starts_with("encoder.layers.1.")) {
      EXPECT_EQ(item.value().grad().abs().max().item<double>(), 0) << item.key();
    } else {
      EXPECT_LT((item.value().grad() - others[item.key()].grad()).abs().max().item<double>(), 1e-10)
          << item.key();
    }
  }
}

// Who waits for gradients hangs hooks behind their accumulation.
TEST(LayerDrop, EveryParameterIsAccumulatedIntoOnceWhicheverLayersAreLeftOut) {
  using torch::autograd::variable_list;
  constexpr double p = 0.4;
  const auto model = model_of(2, 2, p, p);
  std::vector<std::string> order;
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes;
  for (const auto& item : model->named_parameters()) {
    nodes.push_back(torch::autograd::impl::grad_accumulator(item.value()));
    nodes.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [&order, name = item.key()](const variable_list& outputs, const variable_list&) {
          order.push_back(name);
          return outputs;
        }));
  }
  const auto order_of = [&](const char* encoder, const char* decoder) {
    order.clear();
    model->loss(first_batch(), update_without(p, encoder, decoder)).loss_sum.backward();
    std::vector<std::string> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  };
  const auto all = order_of("00", "00");
  EXPECT_EQ(all.size(), nodes.size());
  EXPECT_EQ(order_of("01", "00"), all);
  EXPECT_EQ(order_of("10", "10"), all);
  EXPECT_EQ(order_of("11", "01"), all);
}

TEST(LayerDrop, AnUpdateWithoutAnyLayerTrainsTablesAndLastNorms) {
  constexpr double p = 0.6;
  const auto model = model_of(2, 2, p, p);
  model->loss(first_batch(), update_without(p, "11", "11")).loss_sum.backward();
  for (const auto& item : model->named_parameters()) {
    const at::Tensor& gradient = item.value().grad();
    const double most = gradient.defined() ? gradient.abs().max().item<double>() : 0;
    // Nobody attends to the encoder.
    const bool is_reached =
        item.key() == "embedding.weight" || item.key().starts_with("decoder.final_norm.");
    EXPECT_EQ(most > 0, is_reached) << item.key();
  }
}

}  // namespace
}  // namespace stretto::models
