// Whole words that training drops, on either side and for every kind of part.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "kernels/reference.h"
#include "losses/registry.h"
#include "models/packed.h"
#include "models/registry.h"
#include "nn/embedding.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::second_batch, testing::kRows, testing::kWidth;

constexpr uint64_t kSite = 12;

at::Tensor dropped_of(const data::Batch& batch, double p, uint64_t key) {
  const nn::PackedRows rows = pack(data::source(batch), &batch.sample_ids, at::kCPU);
  const ForwardContext context{.training = true, .dropout_key = key};
  return drop_words(rows, context.dropout(rows.row_keys), p, kSite).dropped_words;
}

data::Batch long_batch() {
  data::Batch batch = data::pair_batch();
  for (int64_t sample = 0; sample < 100; ++sample) {
    batch.sample_ids.push_back(sample);
    data::source(batch).append(std::vector<int64_t>(200, 5));
  }
  return batch;
}

TEST(WordDropout, IsElementZeroOfADropoutMask) {
  const data::Batch batch = first_batch();
  const nn::PackedRows rows = pack(data::source(batch), &batch.sample_ids, at::kCPU);
  const kernels::Dropout drop{.p = 0.4, .key = mix64(77, kSite), .row_keys = rows.row_keys};
  const at::Tensor factors = kernels::reference::dropout_factors(drop, rows.row_keys, 0, 1);
  EXPECT_TRUE(at::equal(dropped_of(batch, 0.4, 77), factors.squeeze(1).eq(0)));
}

TEST(WordDropout, DropsTheStatedShareOfOccurrences) {
  const at::Tensor dropped = dropped_of(long_batch(), 0.3, 1);
  EXPECT_NEAR(dropped.to(at::kDouble).mean().item<double>(), 0.3, 0.015);
  EXPECT_FALSE(at::equal(dropped, dropped_of(long_batch(), 0.3, 2)));
}

TEST(WordDropout, DoesNotDependOnTheCutOfABatch) {
  const data::Batch a = first_batch(), b = second_batch();
  EXPECT_TRUE(at::equal(dropped_of(data::concatenate({a, b}), 0.5, 3),
                        at::cat({dropped_of(a, 0.5, 3), dropped_of(b, 0.5, 3)})));
}

TEST(WordDropout, IsOffOutsideTrainingAndByDefault) {
  const data::Batch batch = first_batch();
  const nn::PackedRows rows = pack(data::source(batch), nullptr, at::kCPU);
  EXPECT_FALSE(drop_words(rows, nn::DropoutSource{}, 0.5, kSite).dropped_words.defined());
  EXPECT_FALSE(dropped_of(batch, 0, 3).defined());
  EXPECT_EQ(Seq2SeqOptions{}.src_word_dropout, 0);
  EXPECT_EQ(Seq2SeqOptions{}.tgt_word_dropout, 0);
}

/// Four tokens, of which the second and third are dropped.
struct Lookup {
  nn::Embedding table{nn::Init(1, at::kCPU).child("table"), 6, 8, 0};
  at::Tensor ids = at::tensor({3, 1, 4, 1}, at::kLong);
  at::Tensor dropped = at::tensor({0, 1, 1, 0}, at::kLong).to(at::kBool);
  at::Tensor position = at::randn({4, 8}, at::detail::createCPUGenerator(4), at::kFloat);
};

TEST(WordDropout, KeepsPositionsAndOtherWords) {
  const Lookup l;
  const torch::NoGradGuard no_grad;
  for (const at::Tensor& position : {l.position, at::Tensor()}) {
    const at::Tensor plain = l.table->forward(l.ids, position),
                     rows = l.table->forward(l.ids, position, l.dropped);
    for (const int64_t kept : {0, 3}) {
      EXPECT_TRUE(at::allclose(rows[kept], plain[kept], 1e-6, 1e-6)) << kept;
    }
    for (const int64_t gone : {1, 2}) {
      const at::Tensor want = position.defined() ? position[gone] : at::zeros({8});
      EXPECT_TRUE(at::equal(rows[gone], want)) << gone;
    }
  }
}

TEST(WordDropout, DroppedWordsHaveNoGradient) {
  const Lookup l;
  l.table->forward(l.ids, l.position, l.dropped).sum().backward();
  const at::Tensor slopes = l.table->weight.grad().abs().sum(1);
  EXPECT_EQ(slopes[4].item<float>(), 0) << "of its only occurrence";
  EXPECT_GT(slopes[3].item<float>(), 0);
  // One of two occurrences of 1 is left: as many as 3 has.
  EXPECT_EQ(slopes[1].item<float>(), slopes[3].item<float>());
}

/// Rows that are sent elsewhere in backward.
struct SentRows : nn::RowGradients {
  void looked_up(const at::Tensor& /*ids*/) override {}
  void add(const at::Tensor& /*ids*/, const at::Tensor& rows) override { sent = rows; }
  at::Tensor sent;
};

TEST(WordDropout, HoldsForRowsWhoseGradientsGoElsewhere) {
  Lookup l;
  const auto rows = std::make_shared<SentRows>();
  l.table->send_rows_to(rows);
  l.table->forward(l.ids, l.position, l.dropped).sum().backward();
  ASSERT_TRUE(rows->sent.defined());
  const at::Tensor size = rows->sent.abs().sum(1);
  for (const int64_t n : {0, 1, 2, 3}) {
    EXPECT_EQ(size[n].item<float>() == 0, l.dropped[n].item<bool>()) << n;
  }
}

std::vector<std::pair<std::string, Seq2SeqOptions>> kinds() {
  const auto of = [](const EncoderChoice& encoder, const DecoderChoice& decoder) {
    Seq2SeqOptions options;
    options.d_model = kWidth;
    options.encoder = encoder;
    options.decoder = decoder;
    return options;
  };
  const StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  return {
      {"transformer", of(stack, stack)},
      {"lstm", of(LstmEncoderOptions{.num_layers = 1}, LstmDecoderOptions{.num_layers = 1})},
      {"conv", of(ConvEncoderOptions{.num_layers = 1}, ConvDecoderOptions{.num_layers = 1})},
      {"light_conv", of(LightEncoderOptions{.num_layers = 1, .num_heads = 2, .kernels = {3}},
                        LightDecoderOptions{.num_layers = 1, .num_heads = 2, .kernels = {3}})},
      {"dynamic_conv", of(DynamicEncoderOptions{.num_layers = 1, .num_heads = 2, .kernels = {3}},
                          DynamicDecoderOptions{.num_layers = 1, .num_heads = 2, .kernels = {3}})}};
}

/// The decoder's rows in training.
at::Tensor rows_of(const Seq2SeqOptions& options, const data::Batch& batch, bool training = true) {
  at::Tensor rows;
  const auto model =
      make_model(options,
                 {.src_rows = kRows,
                  .tgt_rows = kRows,
                  .num_tgt_classes = kRows,
                  .src_specials = stretto::testing::kSpecials,
                  .tgt_specials = stretto::testing::kSpecials},
                 [&](const at::Tensor& x, const at::Tensor&, const at::Tensor&, int64_t,
                     const at::Tensor&, double) {
                   rows = x.detach();
                   return kernels::CrossEntropy{.loss_sum = x.sum(), .nll_sum = x.detach().sum()};
                 });
  model->loss(batch, {.training = training, .dropout_key = 42});
  return rows;
}

/// All words of a side are dropped, but for one of 65,536.
constexpr double kAll = 1 - 1.5 / 65536;

TEST(WordDropout, OfAllWordsLeavesNothingOfASideInEveryKindOfModel) {
  const data::Batch batch = first_batch();
  data::Batch other_source = batch, other_target = batch;
  for (auto& id : data::source(other_source).values) id = 4 + (id + 3) % 18;
  for (auto& id : data::target(other_target).values) id = 4 + (id + 3) % 18;
  for (const auto& [name, plain] : kinds()) {
    SCOPED_TRACE(name);
    const auto sees = [&](const Seq2SeqOptions& options, const data::Batch& other) {
      return !at::equal(rows_of(options, batch), rows_of(options, other));
    };
    EXPECT_TRUE(sees(plain, other_source));
    EXPECT_TRUE(sees(plain, other_target));
    Seq2SeqOptions no_source = plain, no_target = plain;
    no_source.src_word_dropout = kAll;
    no_target.tgt_word_dropout = kAll;
    EXPECT_FALSE(sees(no_source, other_source));
    EXPECT_TRUE(sees(no_source, other_target));
    EXPECT_TRUE(sees(no_target, other_source));
    EXPECT_FALSE(sees(no_target, other_target));
    EXPECT_TRUE(at::equal(rows_of(no_source, batch, false), rows_of(plain, batch, false)));
  }
}

}  // namespace
}  // namespace stretto::models
