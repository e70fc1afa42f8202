#include "families/text/text_plan.h"

#include <gtest/gtest.h>

namespace stretto::experiment {
namespace {

TEST(TextTableGradients, AreThoseOfOneTable) {
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

}  // namespace
}  // namespace stretto::experiment
