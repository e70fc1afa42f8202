#include "metrics/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace stretto::metrics {
namespace {

using Lines = std::vector<std::string>;

/// A reference, and a copy in which each word is wrong with the given probability.
Lines noisy(double noise, uint64_t seed) {
  RandomStream stream(seed);
  Lines lines;
  for (int i = 0; i < 80; ++i) {
    std::string line;
    for (int j = 0; j < 12; ++j) {
      const std::string word = "w" + std::to_string((i * 7 + j * 13) % 50);
      line += (stream.uniform() < noise ? "x" : word) + " ";
    }
    lines.push_back(line);
  }
  return lines;
}

const std::vector<Lines> kReferences = {noisy(0, 1)};

TEST(Bootstrap, IntervalHoldsTheScoreAndGrowsWithConfidence) {
  const Lines system = noisy(0.2, 2);
  const Interval wide = bootstrap_interval({}, system, kReferences, {.confidence = 0.99});
  const Interval narrow = bootstrap_interval({}, system, kReferences, {.confidence = 0.5});
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_LT(narrow.low, wide.score);
  EXPECT_LT(wide.score, narrow.high);
  EXPECT_LT(narrow.high, wide.high);
  EXPECT_DOUBLE_EQ(wide.score, compute({}, system, kReferences).score);
}

// Each resample has a stream of its own, so that the means of 2, 3, 4, … resamples tell every
// score.
TEST(Bootstrap, TheIntervalLeavesOutAsManyDrawsBelowAsAbove) {
  const Lines system = noisy(0.2, 2);
  const auto interval = [&](int resamples, double confidence) {
    return bootstrap_interval({}, system, kReferences,
                              {.resamples = resamples, .confidence = confidence});
  };
  const Interval two = interval(2, 0.5);
  EXPECT_LT(two.low, two.high);
  EXPECT_NEAR(two.mean, (two.low + two.high) / 2, 1e-9);
  std::vector<double> draws{two.low, two.high};
  double sum = 2 * two.mean;
  for (int n = 3; n <= 20; ++n) {
    const double before = std::exchange(sum, n * interval(n, 0.5).mean);
    draws.push_back(sum - before);
  }
  std::sort(draws.begin(), draws.end());
  for (const auto& [confidence, left_out] :
       std::vector<std::pair<double, size_t>>{{0.95, 0}, {0.9, 1}, {0.8, 2}, {0.3, 7}}) {
    const Interval found = interval(20, confidence);
    EXPECT_NEAR(found.low, draws[left_out], 1e-9) << confidence;
    EXPECT_NEAR(found.high, draws[19 - left_out], 1e-9) << confidence;
  }
}

TEST(Bootstrap, DependsOnNothingButTheSeed) {
  const Lines system = noisy(0.2, 2);
  const Interval a = bootstrap_interval({}, system, kReferences, {.seed = 3});
  const Interval b = bootstrap_interval({}, system, kReferences, {.seed = 3});
  const Interval c = bootstrap_interval({}, system, kReferences, {.seed = 4});
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.low, b.low);
  EXPECT_NE(a.mean, c.mean);
}

TEST(PairedBootstrap, SeesThatOneSystemIsBetter) {
  for (const std::string metric : {"bleu", "chrf", "ter"}) {
    SCOPED_TRACE(metric);
    const BootstrapResult result =
        paired_bootstrap({.metric = metric}, noisy(0.1, 2), noisy(0.3, 3), kReferences);
    EXPECT_TRUE(result.significant);
    EXPECT_LT(result.p_value, 0.01);
    EXPECT_GT(result.win_rate, 0.99);
    EXPECT_NEAR(result.difference.score, result.system.score - result.baseline.score, 1e-12);
    EXPECT_EQ(result.difference.score > 0, metric != "ter");
  }
}

// No number of resamples proves that chance cannot do it: the observed difference counts too.
TEST(PairedBootstrap, PIsNeverZero) {
  for (const int resamples : {99, 1000}) {
    const BootstrapResult result =
        paired_bootstrap({}, noisy(0, 1), noisy(0.6, 3), kReferences, {.resamples = resamples});
    ASSERT_EQ(result.win_rate, 1);
    EXPECT_DOUBLE_EQ(result.p_value, 1.0 / (1 + resamples));
  }
}

TEST(PairedBootstrap, FindsNothingBetweenEqualSystems) {
  const Lines system = noisy(0.2, 2);
  const BootstrapResult same = paired_bootstrap({}, system, system, kReferences);
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.win_rate, 0);
  EXPECT_FALSE(same.significant);

  const BootstrapResult alike = paired_bootstrap({}, system, noisy(0.2, 12), kReferences);
  EXPECT_GT(alike.p_value, 0.05);
  EXPECT_FALSE(alike.significant);
}

TEST(PairedBootstrap, RejectsWrongOptionsAndCounts) {
  const Lines system = noisy(0.2, 2);
  EXPECT_THROW(bootstrap_interval({}, system, kReferences, {.resamples = 1}), Error);
  EXPECT_THROW(bootstrap_interval({}, system, kReferences, {.confidence = 1}), Error);
  EXPECT_THROW(paired_bootstrap({}, system, Lines{"a"}, kReferences), Error);
}

}  // namespace
}  // namespace stretto::metrics
