#include "plan/tables.h"

#include <gtest/gtest.h>

namespace stretto::plan {
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
    const auto tables = table_gradients(model, {.src = 10, .tgt = 20}, one.rows_apart);
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
    const auto apart = table_gradients(model, {.src = 10, .tgt = 20}, rows_apart);
    EXPECT_EQ(apart.first_parameters, 80);
    EXPECT_EQ(apart.late_parameters, 2 * 40);
    model.tie_embeddings = "decoder";  // the encoders share theirs
    EXPECT_EQ(table_gradients(model, {.src = 10, .tgt = 20}, rows_apart).late_parameters, 40);
  }
  model.tie_embeddings = "all";  // both sources and the target look up in one
  EXPECT_EQ(table_gradients(model, {.src = 20, .tgt = 20}, /*rows_apart=*/true).lookups, 3);
}

TEST(TableGradients, AreAsWideAsTheRowsInFrontOfThem) {
  models::Seq2SeqOptions model;
  model.d_model = 4;
  model.tie_embeddings = "none";
  model.decoder = models::ConvDecoderOptions{.out_dim = 6};
  const auto tables = table_gradients(model, {.src = 10, .tgt = 20}, false);
  EXPECT_EQ(tables.first_parameters, 120);
  EXPECT_EQ(tables.late_parameters, 40);
}

TEST(TableGradients, OfEncodersAreThoseOfOneTable) {
  models::BertOptions model;
  model.preset = "none";
  model.d_model = 4;
  EXPECT_EQ(text_table_gradients(model, 20, /*has_output=*/false, true).late_parameters, 80);
  EXPECT_EQ(text_table_gradients(model, 20, /*has_output=*/false, true).first_parameters, 0);
  const auto apart = text_table_gradients(model, 20, /*has_output=*/true, true);
  EXPECT_EQ(apart.first_parameters, 80);
  EXPECT_EQ(apart.lookups, 1);
  EXPECT_EQ(text_table_gradients(model, 20, /*has_output=*/true, false).late_parameters, 80);
  model.tie_embeddings = false;
  const auto two = text_table_gradients(model, 20, /*has_output=*/true, true);
  EXPECT_EQ(two.first_parameters, 80);
  EXPECT_EQ(two.late_parameters, 80);
}

TEST(DifferentRows, AreFewerThanLookupsAndThanThereAre) {
  EXPECT_NEAR(different_rows(3815, 8000), 1262, 0.15 * 1262);  // counted in Multi30k
  EXPECT_EQ(different_rows(10, 8000), 10);
  EXPECT_EQ(different_rows(1e6, 8000), 8000);
  EXPECT_EQ(different_rows(0, 8000), 0);
}

}  // namespace
}  // namespace stretto::plan
