#include "plan/tables.h"

#include <gtest/gtest.h>

namespace stretto::plan {
namespace {

TEST(DifferentRows, AreFewerThanLookupsAndThanThereAre) {
  EXPECT_NEAR(different_rows(3815, 8000), 1262, 0.15 * 1262);  // counted in Multi30k
  EXPECT_EQ(different_rows(10, 8000), 10);
  EXPECT_EQ(different_rows(1e6, 8000), 8000);
  EXPECT_EQ(different_rows(0, 8000), 0);
}

}  // namespace
}  // namespace stretto::plan
