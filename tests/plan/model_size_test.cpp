#include "plan/model_size.h"

#include <gtest/gtest.h>

namespace stretto::plan {
namespace {

models::Seq2SeqOptions paper(int64_t d, int64_t ffn) {
  models::Seq2SeqOptions options;
  options.d_model = d;
  options.encoder = models::StackOptions{.num_layers = 6, .num_heads = 8, .ffn_dim = ffn};
  options.decoder = models::StackOptions{.num_layers = 6, .num_heads = 8, .ffn_dim = ffn};
  return options;
}

constexpr TableRows kRows{.src = 32768, .tgt = 32768};

TEST(ModelSize, IsThePublishedOneOfBaseAndBig) {
  auto base = paper(512, 2048), big = paper(1024, 4096);
  EXPECT_EQ(model_size(base, kRows).parameters, 60'915'712);
  EXPECT_EQ(model_size(big, kRows).parameters, 209'911'808);
  base.norm = big.norm = "pre";
  EXPECT_EQ(model_size(base, kRows).parameters, 60'917'760);
  EXPECT_EQ(model_size(big, kRows).parameters, 209'915'904);
  base.norm = "res_post";  // each stack ends in a norm here too
  EXPECT_EQ(model_size(base, kRows).parameters, 60'917'760);
}

TEST(ModelSize, CountsTablesPositionsAndGates) {
  models::Seq2SeqOptions tiny;
  tiny.d_model = 4;
  tiny.encoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 6};
  tiny.decoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 6};
  // attention 80, feed-forward 58, norms 8 each
  const int64_t layers = (80 + 58 + 2 * 8) + (2 * 80 + 58 + 3 * 8);
  EXPECT_EQ(model_size(tiny, {10, 10}).parameters, layers + 40);
  tiny.tie_embeddings = "decoder";
  EXPECT_EQ(model_size(tiny, {10, 20}).parameters, layers + 40 + 80);
  tiny.tie_embeddings = "none";
  EXPECT_EQ(model_size(tiny, {10, 20}).parameters, layers + 40 + 160);
  tiny.positions = "learned";
  tiny.max_positions = 7;
  EXPECT_EQ(model_size(tiny, {10, 20}).parameters, layers + 200 + 2 * 28);
  tiny.activation = "swiglu";
  EXPECT_EQ(model_size(tiny, {10, 20}).parameters, layers + 200 + 56 + 2 * (72 - 58));
}

TEST(TableGradients, AreReadyAsTheReducerSendsThem) {
  auto model = paper(4, 8);
  struct Case {
    const char* tie;
    bool rows_apart;
    int64_t first, late;
    double lookups;
  };
  for (const Case& one : {Case{"all", false, 0, 40, 0}, Case{"all", true, 80, 0, 2},
                          Case{"decoder", false, 0, 40, 0}, Case{"decoder", true, 80, 40, 1},
                          Case{"none", false, 80, 40, 0}, Case{"none", true, 80, 40, 0}}) {
    model.tie_embeddings = one.tie;
    const auto tables = table_gradients(model, {.src = 10, .tgt = 20}, one.rows_apart);
    EXPECT_EQ(tables.first_parameters, one.first) << one.tie << one.rows_apart;
    EXPECT_EQ(tables.late_parameters, one.late) << one.tie << one.rows_apart;
    EXPECT_EQ(tables.lookups, one.lookups) << one.tie << one.rows_apart;
  }
}

TEST(DifferentRows, AreFewerThanLookupsAndThanThereAre) {
  EXPECT_NEAR(different_rows(3815, 8000), 1262, 0.15 * 1262);  // counted in Multi30k
  EXPECT_EQ(different_rows(10, 8000), 10);
  EXPECT_EQ(different_rows(1e6, 8000), 8000);
  EXPECT_EQ(different_rows(0, 8000), 0);
}

TEST(TrainingFlops, AreSixForEachWeightThatATokenMeetsAndTheAttention) {
  // Base: 44.04 M weights in products without biases, 16.78 M in the output layer.
  const double weights = 6 * (4 * 512.0 * 512 + 2 * 512.0 * 2048) +
                         6 * (8 * 512.0 * 512 + 2 * 512.0 * 2048) + 32768.0 * 512;
  const double attention = 12 * 512.0 * 6 * 90;
  EXPECT_NEAR(training_flops_per_token(paper(512, 2048), kRows), 6 * weights + attention, 1);
  EXPECT_NEAR(training_flops_per_token(paper(1024, 4096), kRows) / 1e9, 1.271, 0.01);
}

TEST(TrainingFlops, GrowWithTheSourceOfATargetToken) {
  const auto base = paper(512, 2048);
  EXPECT_GT(training_flops_per_token(base, kRows, {.src = 60, .tgt = 30}),
            1.3 * training_flops_per_token(base, kRows));
}

}  // namespace
}  // namespace stretto::plan
