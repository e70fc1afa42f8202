#include "plan/scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace stretto::plan {
namespace {

/// 100 ms a micro-batch, 100 MB of gradients, hosts of one process joined by 1 GB/s.
plan::Setup slow_link() {
  return {.compute_seconds = 0.1,
          .backward_share = 0.6,
          .units = 1000,
          .weak = true,
          .gradient_bytes = 100e6,
          .bucket_bytes = 10e6,
          .per_host = 1,
          .between = {.bytes_per_second = 1e9}};
}

TEST(AllReduceModel, RingAndHalvingDoublingFollowTheirFormulas) {
  plan::Setup setup = slow_link();
  setup.between.latency_seconds = 1e-3;
  for (const int64_t p : {2, 3, 8, 64}) {
    const double bandwidth = 2.0 * double(p - 1) / double(p) * 100e6 / 1e9;
    setup.algorithm = Algorithm::kRing;
    EXPECT_NEAR(all_reduce_seconds(setup, 100e6, p), bandwidth + 2e-3 * double(p - 1), 1e-12);
    setup.algorithm = Algorithm::kHalvingDoubling;
    EXPECT_NEAR(all_reduce_seconds(setup, 100e6, p),
                bandwidth + 2e-3 * std::ceil(std::log2(double(p))), 1e-12);
  }
  EXPECT_EQ(all_reduce_seconds(setup, 100e6, 1), 0);
}

TEST(AllReduceModel, ARingIsAsSlowAsItsSlowestLinkAndTwoLevelsAddUp) {
  plan::Setup setup = slow_link();
  setup.per_host = 8;
  setup.within = {.bytes_per_second = 10e9};
  EXPECT_NEAR(all_reduce_seconds(setup, 100e6, 8), 2 * 7 / 8.0 * 0.01, 1e-12);
  EXPECT_NEAR(all_reduce_seconds(setup, 100e6, 16), 2 * 15 / 16.0 * 0.1, 1e-12);
  setup.algorithm = Algorithm::kHalvingDoubling;
  EXPECT_NEAR(all_reduce_seconds(setup, 100e6, 16), 2 * (7 / 8.0 * 0.01 + 1 / 2.0 * 0.1), 1e-12);
}

TEST(ScalingModel, OneProcessSendsNothingAndIsFullyEfficient) {
  const auto one = predict(slow_link(), 1);
  EXPECT_EQ(one.communication_seconds, 0);
  EXPECT_DOUBLE_EQ(one.step_seconds, 0.1);
  EXPECT_DOUBLE_EQ(one.efficiency, 1);
  EXPECT_DOUBLE_EQ(one.units_per_second, 10000);
}

TEST(ScalingModel, WithoutOverlapAllCommunicationIsExposed) {
  plan::Setup setup = slow_link();
  setup.overlap = false;
  const auto two = predict(setup, 2);
  EXPECT_NEAR(two.communication_seconds, 0.1, 1e-12);
  EXPECT_NEAR(two.exposed_seconds, 0.1, 1e-12);
  EXPECT_NEAR(two.step_seconds, 0.2, 1e-12);
  EXPECT_NEAR(two.limit_seconds, 0.1, 1e-12);
  EXPECT_NEAR(two.efficiency, 0.5, 1e-12);
}

// The formula is closed; here the buckets are sent one by one.
double simulate(const plan::Setup& setup, double bucket_seconds, int64_t count) {
  const double backward = setup.backward_share * setup.compute_seconds;
  const auto first = static_cast<int64_t>(std::floor(double(count) * setup.first_share));
  const auto early = static_cast<int64_t>(std::floor(double(count) * (1 - setup.late_share)));
  double free_at = 0;
  for (int64_t i = 1; i <= count; ++i) {
    const double ready = i <= first   ? 0
                         : i <= early ? backward * double(i - first) / double(early - first)
                                      : backward;
    free_at = std::max(free_at, ready) + bucket_seconds;
  }
  return std::max(0.0, free_at - backward);
}

TEST(ScalingModel, BucketsLeaveAsTheyBecomeReady) {
  for (const double gigabytes : {0.2, 0.5, 1.0, 1.6, 2.0, 5.0, 100.0}) {
    for (const auto& [first, late] : std::vector<std::pair<double, double>>{
             {0, 0}, {0, 0.16}, {0, 0.5}, {0, 1}, {0.16, 0}, {0.3, 0.3}, {0.5, 0.5}, {1, 0}}) {
      plan::Setup setup = slow_link();
      setup.first_share = first;
      setup.late_share = late;
      setup.between.bytes_per_second = gigabytes * 1e9;
      const double bucket = 10e6 / (gigabytes * 1e9);  // two processes: all bytes once
      EXPECT_NEAR(predict(setup, 2).exposed_seconds, simulate(setup, bucket, 10), 1e-9)
          << gigabytes << " GB/s, first " << first << ", late " << late;
    }
  }
}

TEST(ScalingModel, AFastLinkExposesOnlyTheLastBucketAndATiedTableAllOfItself) {
  plan::Setup setup = slow_link();
  setup.between.bytes_per_second = 10e9;
  EXPECT_NEAR(predict(setup, 2).exposed_seconds, 1e-3, 1e-9);
  setup.late_share = 0.3;
  EXPECT_NEAR(predict(setup, 2).exposed_seconds, 4e-3, 1e-9);  // and the last early bucket
}

TEST(ScalingModel, ATableThatLeavesFirstGivesALineThatIsTheLimitAnEarlierStart) {
  plan::Setup setup = slow_link();  // 60 ms of backward, ten buckets of 10 ms
  EXPECT_NEAR(predict(setup, 2).exposed_seconds, 46e-3, 1e-9);  // the first is ready after 6 ms
  setup.first_share = 0.3;
  EXPECT_NEAR(predict(setup, 2).exposed_seconds, 40e-3, 1e-9);
}

TEST(ScalingModel, LookedUpRowsOfAllProcessesFollowTheBuckets) {
  plan::Setup setup = slow_link();
  const auto without = predict(setup, 4);
  setup.row_bytes = 2e6;
  auto with = predict(setup, 4);
  EXPECT_NEAR(with.exposed_seconds - without.exposed_seconds, 3 * 2e-3, 1e-9);
  EXPECT_NEAR(with.communication_seconds - without.communication_seconds, 3 * 2e-3, 1e-9);
  setup.algorithm = Algorithm::kHalvingDoubling;  // the same bytes
  EXPECT_NEAR(predict(setup, 4).exposed_seconds, with.exposed_seconds, 1e-9);
  EXPECT_EQ(predict(setup, 1).communication_seconds, 0);
}

// One process alone would step the optimizer for each of the batches that the others have.
TEST(ScalingModel, WeakScalingCountsTheOptimizerOfEachProcess) {
  plan::Setup setup = slow_link();
  setup.gradient_bytes = 0;
  setup.optimizer_seconds = 0.05;
  for (const int64_t p : {1, 2, 8}) {
    const auto prediction = predict(setup, p);
    EXPECT_NEAR(prediction.step_seconds, 0.15, 1e-12) << p;
    EXPECT_NEAR(prediction.speedup, double(p), 1e-12) << p;
    EXPECT_NEAR(prediction.efficiency, 1, 1e-12) << p;
  }
}

TEST(ScalingModel, CompressedGradientsTakeHalfTheTime) {
  plan::Setup setup = slow_link();
  setup.overlap = false;
  plan::Setup half = setup;
  half.gradient_bytes /= 2;
  EXPECT_NEAR(predict(half, 4).communication_seconds, predict(setup, 4).communication_seconds / 2,
              1e-12);
}

TEST(ScalingModel, AccumulationSendsOnceForAllMicroBatches) {
  plan::Setup setup = slow_link();
  setup.overlap = false;
  setup.micro_batches = 4;
  EXPECT_NEAR(predict(setup, 2).efficiency, 0.8, 1e-12);  // 0.4 s of work, 0.1 s of sending
}

TEST(ScalingModel, MicroBatchesThatDoNotDivideAreCutOrLeaveProcessesIdle) {
  plan::Setup setup = slow_link();
  setup.gradient_bytes = 0;
  setup.weak = false;
  setup.micro_batches = 4;
  const double cut[] = {1, 1, 1, 1, 4 / 5.0, 4 / 6.0, 4 / 7.0, 1};
  const double whole[] = {1, 1, 4 / 6.0, 1, 4 / 5.0, 4 / 6.0, 4 / 7.0, 4 / 8.0};
  for (int64_t p = 1; p <= 8; ++p) {
    setup.cut = true;
    EXPECT_NEAR(predict(setup, p).efficiency, cut[p - 1], 1e-12) << p;
    setup.cut = false;
    EXPECT_NEAR(predict(setup, p).efficiency, whole[p - 1], 1e-12) << p;
  }
}

TEST(ScalingModel, BehindAPartOfAMicroBatchLessIsHidden) {
  plan::Setup setup = slow_link();  // 60 ms of backward, 100 ms of sending in 10 ms buckets
  setup.weak = false;
  setup.micro_batches = 1;
  const auto two = predict(setup, 2);
  EXPECT_NEAR(two.compute_seconds, 0.05, 1e-12);
  EXPECT_NEAR(two.exposed_seconds, 0.1 - 0.03 + 0.003, 1e-9);  // the first is ready after 3 ms
}

TEST(ScalingModel, ShardedDividesTheStepAndSendsParametersAfterIt) {
  plan::Setup setup = slow_link();
  setup.optimizer_seconds = 0.04;
  setup.parameter_bytes = 200e6;
  setup.overlap = false;
  setup.strategy = Strategy::kSharded;
  const auto four = predict(setup, 4);
  EXPECT_NEAR(four.compute_seconds, 0.1 + 0.01, 1e-12);
  EXPECT_NEAR(four.communication_seconds, 0.75 * 0.1 + 0.75 * 0.2, 1e-12);
  setup.overlap = true;
  EXPECT_GE(predict(setup, 4).exposed_seconds, 0.75 * 0.2);
}

TEST(ScalingModel, AParameterServerSendsEverythingOnceEachWay) {
  plan::Setup setup = slow_link();
  setup.parameter_bytes = 200e6;
  setup.overlap = false;
  setup.strategy = Strategy::kParameterServer;
  EXPECT_NEAR(predict(setup, 8).communication_seconds, 0.1 + 0.2, 1e-12);
}

TEST(ScalingModel, NeighboursOnAHostAndSlowestProcessesCost) {
  plan::Setup setup = slow_link();
  setup.gradient_bytes = 0;
  setup.per_host = 2;
  setup.contention = 0.1;
  EXPECT_NEAR(predict(setup, 2).compute_seconds, 0.11, 1e-12);
  EXPECT_NEAR(predict(setup, 4).compute_seconds, 0.11, 1e-12);
  setup.contention = 0;
  setup.jitter = 0.2;
  EXPECT_NEAR(predict(setup, 4).compute_seconds, 0.1 * (1 + 0.2 * expected_largest(4)), 1e-12);
  setup.micro_batches = 16;  // the mean of 16 varies a quarter as much
  EXPECT_NEAR(predict(setup, 4).compute_seconds, 1.6 * (1 + 0.05 * expected_largest(4)), 1e-12);
}

TEST(ScalingModel, HiddenCommunicationTakesItsShareOfCompute) {
  plan::Setup setup = slow_link();
  setup.between.bytes_per_second = 10e9;
  const auto free = predict(setup, 2);
  setup.overlap_cost = 0.5;
  EXPECT_NEAR(predict(setup, 2).step_seconds,
              free.step_seconds + 0.5 * (free.communication_seconds - free.exposed_seconds), 1e-12);
}

TEST(ScalingModel, TheLargestOfNormalNumbersIsThatOfTheTables) {
  // Exact: 1/sqrt(pi), 3/(2 sqrt(pi)); from tables of normal order statistics: 10 and 100.
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_largest(3), 0.8463, 0.03);
  EXPECT_NEAR(expected_largest(10), 1.5388, 0.01);
  EXPECT_NEAR(expected_largest(100), 2.5076, 0.01);
}

TEST(ScalingModel, SmallBucketsOverManyProcessesAreMostlyLatency) {
  plan::Setup setup = slow_link();
  setup.between.latency_seconds = 1e-3;
  // Ten buckets of 2 * 7 * 1 ms, and 2 * 7 / 8 * 100 ms for the bytes.
  const auto eight = predict(setup, 8);
  EXPECT_EQ(eight.buckets, 10);
  EXPECT_NEAR(eight.latency_seconds, 0.14, 1e-12);
  EXPECT_NEAR(eight.communication_seconds, 0.14 + 0.175, 1e-12);
  EXPECT_FALSE(mostly_latency(eight));
  EXPECT_TRUE(mostly_latency(predict(setup, 16)));  // 0.3 s and 0.1875 s
  setup.algorithm = Algorithm::kHalvingDoubling;
  EXPECT_NEAR(predict(setup, 16).latency_seconds, 0.08, 1e-12);
  EXPECT_FALSE(mostly_latency(predict(setup, 16)));
  setup.algorithm = Algorithm::kRing;
  setup.bucket_bytes = 100e6;  // one cannot become fewer
  setup.gradient_bytes = 1e6;
  EXPECT_FALSE(mostly_latency(predict(setup, 16)));
  EXPECT_EQ(predict(setup, 1).buckets, 0);
}

TEST(ScalingModel, ListsEverySmallNumberOfProcessesAndTheOneAskedFor) {
  std::vector<int64_t> sizes;
  for (const auto& one : predict_up_to(slow_link(), 100)) sizes.push_back(one.processes);
  const std::vector<int64_t> want{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                  12, 13, 14, 15, 16, 24, 32, 48, 64, 96, 100};
  EXPECT_EQ(sizes, want);
  EXPECT_EQ(predict_up_to(slow_link(), 3).size(), 3u);
}

TEST(ScalingModel, RefusesWhatCannotBe) {
  EXPECT_THROW(predict(slow_link(), 0), std::invalid_argument);
  plan::Setup setup = slow_link();
  setup.late_share = 1.5;
  EXPECT_THROW(predict(setup, 2), std::invalid_argument);
  setup = slow_link();
  setup.first_share = setup.late_share = 0.6;
  EXPECT_THROW(predict(setup, 2), std::invalid_argument);
  setup = slow_link();
  setup.row_bytes = -1;
  EXPECT_THROW(predict(setup, 2), std::invalid_argument);
  setup = slow_link();
  setup.compute_seconds = -1;
  EXPECT_THROW(predict(setup, 2), std::invalid_argument);
  setup = slow_link();
  setup.bucket_bytes = 0;
  EXPECT_THROW(predict(setup, 2), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::plan
