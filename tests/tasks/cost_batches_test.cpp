#include "tasks/cost_batches.h"

#include <gtest/gtest.h>

namespace stretto::tasks {
namespace {

using Batches = std::vector<std::vector<size_t>>;

const std::vector<int64_t> kCosts{3, 0, 5, 1, 3, 9, 2};

TEST(CostBatches, HoldNoMoreThanTheirBoundUnlessOneSampleIsAboveIt) {
  EXPECT_EQ(cost_batches(kCosts, {.max_cost = 8}), (Batches{{0, 2}, {3, 4}, {5}, {6}}));
  EXPECT_EQ(cost_batches(kCosts, {.max_cost = 1}), (Batches{{0}, {2}, {3}, {4}, {5}, {6}}));
  EXPECT_EQ(cost_batches(kCosts, {.max_cost = 100}), (Batches{{0, 2, 3, 4, 5, 6}}));
}

TEST(CostBatches, AreFilledInTheOrderThatIsAskedFor) {
  EXPECT_EQ(cost_batches(kCosts, {.order = CostOrder::kShortestFirst, .max_cost = 8}),
            (Batches{{3, 6, 0}, {4, 2}, {5}}));
  EXPECT_EQ(cost_batches(kCosts, {.order = CostOrder::kLongestFirst, .max_cost = 8}),
            (Batches{{5}, {2, 0}, {4, 6, 3}}));
}

TEST(CostBatches, HoldAtMostSoManySamples) {
  EXPECT_EQ(cost_batches(kCosts, {.max_cost = 100, .max_samples = 4}),
            (Batches{{0, 2, 3, 4}, {5, 6}}));
}

// 23 in all: 12 for each of two threads, 8 for each of three.
TEST(CostBatches, AreSmallEnoughForEveryThread) {
  const CostBatchOptions options{.max_cost = 100, .for_all_threads = true};
  EXPECT_EQ(cost_batches(kCosts, options, 1), (Batches{{0, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(cost_batches(kCosts, options, 2), (Batches{{0, 2, 3, 4}, {5, 6}}));
  EXPECT_EQ(cost_batches(kCosts, options, 3), (Batches{{0, 2}, {3, 4}, {5}, {6}}));
  EXPECT_EQ(cost_batches(kCosts, {.max_cost = 5, .for_all_threads = true}, 2),
            (Batches{{0}, {2}, {3, 4}, {5}, {6}}));
}

TEST(CostBatches, OfNothingAreNone) {
  EXPECT_TRUE(cost_batches({}, {.max_cost = 8, .for_all_threads = true}, 4).empty());
  EXPECT_TRUE(cost_batches(std::vector<int64_t>{0, 0}, {.max_cost = 8}).empty());
}

}  // namespace
}  // namespace stretto::tasks
