#include "families/translation/translation_plan.h"

#include <gtest/gtest.h>

namespace stretto::experiment {
namespace {

TEST(TableGradients, AreReadyAsTheReducerSendsThem) {
  models::Seq2SeqOptions model;
  model.d_model = 4;
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
    const auto tables = table_gradients(model, {.input = 10, .output = 20}, one.rows_apart);
    EXPECT_EQ(tables.first_parameters, one.first) << one.tie << one.rows_apart;
    EXPECT_EQ(tables.late_parameters, one.late) << one.tie << one.rows_apart;
    EXPECT_EQ(tables.lookups, one.lookups) << one.tie << one.rows_apart;
  }
}

TEST(TableGradients, OfTwoEncodersThatTieNothingAreThoseOfTwoTables) {
  models::Seq2SeqOptions model;
  model.d_model = 4;
  model.encoders.resize(2);
  for (const bool rows_apart : {false, true}) {
    model.tie_embeddings = "none";
    const auto apart = table_gradients(model, {.input = 10, .output = 20}, rows_apart);
    EXPECT_EQ(apart.first_parameters, 80);
    EXPECT_EQ(apart.late_parameters, 2 * 40);
    model.tie_embeddings = "decoder";  // the encoders share theirs
    EXPECT_EQ(table_gradients(model, {.input = 10, .output = 20}, rows_apart).late_parameters, 40);
  }
  model.tie_embeddings = "all";  // both sources and the target look up in one
  EXPECT_EQ(table_gradients(model, {.input = 20, .output = 20}, /*rows_apart=*/true).lookups, 3);
}

TEST(TableGradients, AreAsWideAsTheRowsInFrontOfThem) {
  models::Seq2SeqOptions model;
  model.d_model = 4;
  model.tie_embeddings = "none";
  model.decoder = models::ConvDecoderOptions{.out_dim = 6};
  const auto tables = table_gradients(model, {.input = 10, .output = 20}, false);
  EXPECT_EQ(tables.first_parameters, 120);
  EXPECT_EQ(tables.late_parameters, 40);
}

}  // namespace
}  // namespace stretto::experiment
