// The share of zeros over updates, as tables.
#include "compress/prune_schedule.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stretto::compress {
namespace {

using Table = std::vector<std::pair<int64_t, double>>;  // completed updates -> share of zeros

void expect_shares(const PruneOptions& options, const Table& table) {
  const PruneSchedule schedule(options);
  for (const auto& [updates, share] : table) {
    EXPECT_NEAR(schedule.sparsity_after(updates), share, 1e-12) << "after " << updates;
    const int64_t number = schedule.pruning_after(updates);
    if (number > 0) {
      EXPECT_NEAR(schedule.sparsity_of(number), share, 1e-12) << "after " << updates;
    }
  }
}

TEST(PruneSchedule, ZeroPrunesNothing) {
  const PruneSchedule schedule(PruneOptions{});
  EXPECT_EQ(schedule.prunings(), 0);
  EXPECT_EQ(schedule.last(), 0);
  for (const int64_t updates : {0, 1, 100}) {
    EXPECT_EQ(schedule.pruning_after(updates), 0);
    EXPECT_EQ(schedule.sparsity_after(updates), 0);
  }
}

TEST(PruneSchedule, OnceIsOnePruning) {
  const PruneOptions options{.sparsity = 0.6, .schedule = "once", .begin = 5, .every = 3};
  expect_shares(options, {{0, 0}, {4, 0}, {5, 0.6}, {6, 0.6}, {8, 0.6}, {1000, 0.6}});
  const PruneSchedule schedule(options);
  EXPECT_EQ(schedule.prunings(), 1);
  EXPECT_EQ(schedule.last(), 5);
  EXPECT_EQ(schedule.pruning_after(5), 1);
  EXPECT_EQ(schedule.pruning_after(8), 0);
}

// Steps of 15 % up to 90 %, as Li et al. prune, with training between them.
TEST(PruneSchedule, StepsAddTheIncrementUntilTheShareIsReached) {
  const PruneOptions options{.sparsity = 0.9, .schedule = "steps", .begin = 10, .every = 100};
  expect_shares(options, {{9, 0},
                          {10, 0.15},
                          {109, 0.15},
                          {110, 0.30},
                          {210, 0.45},
                          {310, 0.60},
                          {410, 0.75},
                          {509, 0.75},
                          {510, 0.90},
                          {610, 0.90}});
  const PruneSchedule schedule(options);
  EXPECT_EQ(schedule.prunings(), 6);
  EXPECT_EQ(schedule.last(), 510);
  for (const int64_t updates : {0, 9, 11, 111, 610, 710}) {
    EXPECT_EQ(schedule.pruning_after(updates), 0) << updates;
  }
}

TEST(PruneSchedule, TheLastStepIsAsSmallAsItMustBe) {
  expect_shares({.sparsity = 0.5, .schedule = "steps", .every = 1, .increment = 0.2},
                {{0, 0.2}, {1, 0.4}, {2, 0.5}, {3, 0.5}});
  // 3 * 0.2 is above 0.6 by a rounding.
  EXPECT_EQ(PruneSchedule(PruneOptions{.sparsity = 0.6, .schedule = "steps", .increment = 0.2})
                .prunings(),
            3);
  EXPECT_EQ(PruneSchedule(PruneOptions{.sparsity = 0.1, .schedule = "steps", .increment = 0.5})
                .prunings(),
            1);
}

TEST(PruneSchedule, CubicFollowsZhuAndGupta) {
  const PruneOptions options{
      .sparsity = 0.8, .schedule = "cubic", .begin = 2, .every = 2, .end = 8};
  // Four prunings: s - s (1 - i / 4)^3.
  expect_shares(options, {{1, 0},
                          {2, 0.8 - 0.8 * 0.421875},
                          {3, 0.8 - 0.8 * 0.421875},
                          {4, 0.8 - 0.8 * 0.125},
                          {6, 0.8 - 0.8 * 0.015625},
                          {8, 0.8},
                          {10, 0.8}});
  EXPECT_EQ(PruneSchedule(options).last(), 8);
}

TEST(PruneSchedule, SharesNeverFall) {
  for (const char* name : {"once", "steps", "cubic"}) {
    const PruneSchedule schedule(PruneOptions{
        .sparsity = 0.77, .schedule = name, .begin = 3, .every = 7, .increment = 0.1, .end = 80});
    double before = 0;
    for (int64_t updates = 0; updates < 120; ++updates) {
      const double share = schedule.sparsity_after(updates);
      EXPECT_GE(share, before) << name << updates;
      before = share;
    }
    EXPECT_EQ(before, 0.77) << name;
  }
}

}  // namespace
}  // namespace stretto::compress
