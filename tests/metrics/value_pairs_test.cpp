#include "metrics/value_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace stretto::metrics {
namespace {

using Values = std::vector<double>;

ValuePairs pairs_of(const Values& gold, const Values& predicted) {
  ValuePairs pairs(static_cast<int64_t>(gold.size()));
  for (size_t i = 0; i < gold.size(); ++i) {
    pairs.add(static_cast<int64_t>(i), gold[i], predicted[i]);
  }
  return pairs;
}

TEST(ValuePairs, HavePearsonCorrelation) {
  // Differences from the means: -1 0 1 and -2 1 1: 3 / sqrt(2 * 6).
  EXPECT_NEAR(pairs_of({1, 2, 3}, {0, 3, 3}).pearson(), 3 / std::sqrt(12.0), 1e-15);
  EXPECT_NEAR(pairs_of({1, 2}, {5, 1}).pearson(), -1, 1e-15);
}

TEST(ValuePairs, KeepPearsonCorrelationOfLargeAndOfTinyValues) {
  const double expected = 3 / std::sqrt(12.0);
  EXPECT_NEAR(pairs_of({1e9 + 1, 1e9 + 2, 1e9 + 3}, {0, 3, 3}).pearson(), expected, 1e-12);
  EXPECT_NEAR(pairs_of({1e-200, 2e-200, 3e-200}, {0, 3e100, 3e100}).pearson(), expected, 1e-12);
}

TEST(ValuePairs, HaveSpearmanCorrelationWithAveragedTies) {
  // Ranks 1 2 3 4 and 1 2.5 2.5 4: from the mean 2.5: 4.5 / sqrt(5 * 4.5).
  EXPECT_NEAR(pairs_of({10, 20, 30, 40}, {-1, 0, 0, 100}).spearman(), 4.5 / std::sqrt(22.5), 1e-15);
  EXPECT_NEAR(pairs_of({1, 2, 3}, {1, 10, 1000}).spearman(), 1, 1e-15);
}

TEST(ValuePairs, HaveNoCorrelationOfAConstant) {
  for (const auto& pairs : {pairs_of({1, 2, 3}, {0.1, 0.1, 0.1}), pairs_of({1}, {1}),
                            pairs_of({}, {}), pairs_of({1, 2}, {std::nan(""), 1})}) {
    EXPECT_TRUE(std::isnan(pairs.pearson()));
    EXPECT_TRUE(std::isnan(pairs.spearman()));
  }
}

TEST(ValuePairs, HaveMeanSquaredError) {
  EXPECT_EQ(pairs_of({1, 2}, {2, 4}).mean_squared_error(), 2.5);
  EXPECT_TRUE(std::isnan(pairs_of({}, {}).mean_squared_error()));
}

TEST(ValuePairs, AddUpOverProcessesInTheOrderOfSamples) {
  ValuePairs one(5), other(5), both(5);
  one.add(3, 30, 2);
  one.add(0, 10, 1);
  other.add(1, 20, 3);
  Values sums(one.sums().begin(), one.sums().end());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums()[i];
  both.set_sums(sums);
  EXPECT_EQ(both.pearson(), pairs_of({10, 20, 30}, {1, 3, 2}).pearson());
  EXPECT_EQ(both.mean_squared_error(), pairs_of({10, 20, 30}, {1, 3, 2}).mean_squared_error());
}

TEST(ValuePairs, CountASampleOfTwoProcessesOnce) {
  auto pairs = pairs_of({1, 2}, {3, 5});
  Values sums(pairs.sums().begin(), pairs.sums().end());
  for (double& sum : sums) sum *= 2;
  ValuePairs both(2);
  both.set_sums(sums);
  EXPECT_EQ(both.mean_squared_error(), 6.5);
}

TEST(ValuePairs, RefuseSamplesOutsideAndTwice) {
  ValuePairs pairs(2);
  pairs.add(1, 0, 0);
  EXPECT_THROW(pairs.add(1, 0, 0), std::invalid_argument);
  EXPECT_THROW(pairs.add(2, 0, 0), std::invalid_argument);
  EXPECT_THROW(ValuePairs(-1), std::invalid_argument);
  EXPECT_THROW(pairs.set_sums(Values(5)), std::invalid_argument);
}

TEST(AverageRanks, GiveEqualValuesTheMeanOfTheirRanks) {
  EXPECT_EQ(average_ranks(Values{3, 1, 3, 3, 2}), (Values{4, 1, 4, 4, 2}));
  EXPECT_EQ(average_ranks(Values{}), Values{});
  EXPECT_THROW(average_ranks(Values{1, std::nan("")}), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::metrics
