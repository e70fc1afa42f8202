#include "optim/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace stretto::optim {
namespace {

using Vector = std::vector<double>;

/// L(w; x) = 1/2 (w - x)^T H (w - x) with diagonal H and x ~ N(0, diag(v)): the gradient of a
/// sample is H w - H x, so G = H w and Sigma = H diag(v) H.
class Quadratic {
 public:
  explicit Quadratic(size_t size, double spread) {
    for (size_t i = 0; i < size; ++i) {
      const double curvature = 0.5 + 1.5 * static_cast<double>(i) / static_cast<double>(size);
      gradient_.push_back(curvature * (i % 3 == 0 ? 1.0 : -0.5));
      deviation_.push_back(curvature * spread * (i % 2 == 0 ? 1.0 : 0.25));
    }
  }
  double norm_sq() const { return square(gradient_); }
  double trace() const { return square(deviation_); }

  /// The update of `sizes.size()` parts: sums of that many samples' gradients.
  GradientNorms sample(RandomStream& random, const std::vector<int>& sizes) const {
    Vector sum(gradient_.size(), 0.0);
    std::vector<GradientPart> parts;
    GradientPart whole;
    for (const int size : sizes) {
      Vector part(gradient_.size(), 0.0);
      for (int n = 0; n < size; ++n) {
        for (size_t i = 0; i < part.size(); ++i)
          part[i] += gradient_[i] + deviation_[i] * random.normal();
      }
      for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
      parts.push_back({static_cast<double>(size), square(part)});
      whole.weight += size;
    }
    whole.sum_norm_sq = square(sum);
    return norms_of_parts(parts, whole);
  }

 private:
  static double square(const Vector& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return sum;
  }
  Vector gradient_, deviation_;
};

TEST(NoiseScale, TakesItsTwoEstimatesFromNormsByHand) {
  // G = (3, 4), tr(Sigma) = 100: a batch of n has the expected norm 25 + 100 / n.
  NoiseScale scale(0.5);
  scale.add({.small_batch = 5, .small_norm_sq = 45, .big_batch = 20, .big_norm_sq = 30});
  EXPECT_DOUBLE_EQ(scale.norm_sq(), 25);
  EXPECT_DOUBLE_EQ(scale.trace(), 100);
}

TEST(NoiseScale, AveragesAsATableOverSteps) {
  // Norms that give exactly (|G|^2, tr): small = g + t, big = g + t / 4 at batches 1 and 4.
  struct Row {
    double norm_sq, trace;            // of this update
    double mean_norm_sq, mean_trace;  // corrected averages with decay 0.5
  };
  const Row rows[] = {
      {4, 8, 4, 8},                                             // weights 1
      {1, 2, (4 + 2 * 1) / 3.0, (8 + 2 * 2) / 3.0},             // 1 2, over 3
      {-2, 16, (4 + 2 * 1 - 4 * 2) / 7.0, (8 + 4 + 64) / 7.0},  // 1 2 4, over 7
      {6, -4, (-2 + 48) / 15.0, (76 - 32) / 15.0},              // 1 2 4 8, over 15
  };
  NoiseScale scale(0.5);
  for (const Row& row : rows) {
    scale.add({1, row.norm_sq + row.trace, 4, row.norm_sq + row.trace / 4});
    EXPECT_NEAR(scale.norm_sq(), row.mean_norm_sq, 1e-12);
    EXPECT_NEAR(scale.trace(), row.mean_trace, 1e-12);
  }
}

TEST(NoiseScale, DividesTheAveragesAndDoesNotAverageTheRatios) {
  NoiseScale scale(0.99);
  // Ratios 1 and 9; the mean of traces over the mean of norms is (2 + 9) / (2 + 1).
  for (int i = 0; i < 4000; ++i) {
    const double g = i % 2 == 0 ? 2 : 1, t = i % 2 == 0 ? 2 : 9;
    scale.add({1, g + t, 2, g + t / 2});
  }
  EXPECT_NEAR(*scale.value(), 11.0 / 3, 0.05);
}

TEST(NoiseScale, SpeaksAfterTenUpdatesAndOnlyOfAPositiveGradient) {
  NoiseScale scale(0.5);
  for (int i = 1; i <= 9; ++i) {
    scale.add({1, 3, 2, 2});  // |G|^2 = 1, tr = 2
    EXPECT_FALSE(scale.value()) << i;
  }
  scale.add({1, 3, 2, 2});
  EXPECT_DOUBLE_EQ(*scale.value(), 2);
  scale.add({1, 10, 2, 1});  // |G|^2 = -8 outweighs the past
  EXPECT_LT(scale.norm_sq(), 0);
  EXPECT_FALSE(scale.value());
  for (int i = 0; i < 5; ++i) scale.add({1, 3, 2, 2});
  EXPECT_TRUE(scale.value());
  for (int i = 0; i < 20; ++i) scale.add({1, 1, 2, 1.5});  // noise below nothing
  EXPECT_LT(scale.trace(), 0);
  EXPECT_EQ(*scale.value(), 0);
}

TEST(NoiseScale, LeavesOutUpdatesThatSayNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  NoiseScale scale;
  const GradientNorms useless[] = {{4, 1, 4, 1},   {8, 1, 4, 1},   {0, 1, 4, 1},
                                   {2, inf, 4, 1}, {2, 1, 4, nan}, {nan, 1, 4, 1}};
  for (const GradientNorms& norms : useless) scale.add(norms);
  EXPECT_EQ(scale.count(), 0);
  EXPECT_EQ(scale.norm_sq(), 0);
  scale.add(norms_of_parts({}, {4, 1}));
  EXPECT_EQ(scale.count(), 0);
}

TEST(NoiseScale, ConvergesToTheTruthOnAQuadratic) {
  for (const double spread : {1.0, 6.0}) {
    const Quadratic quadratic(24, spread);
    const double truth = quadratic.trace() / quadratic.norm_sq();
    RandomStream random(mix64(3, static_cast<uint64_t>(spread)));
    NoiseScale scale(0.9995);
    for (int update = 0; update < 8000; ++update) scale.add(quadratic.sample(random, {4, 4, 4, 4}));
    EXPECT_NEAR(*scale.value(), truth, 0.05 * truth) << "spread " << spread;
  }
}

TEST(NoiseScale, FollowsTheGradientAsItShrinks) {
  // Descent on the quadratic with a fixed batch: the noise stays, the gradient goes, B rises.
  const Quadratic near_start(24, 2), later(24, 6);
  const double before = near_start.trace() / near_start.norm_sq();
  const double after = later.trace() / later.norm_sq();
  RandomStream random(5);
  NoiseScale scale(0.98);
  const std::vector<int> sizes(8, 4);
  for (int i = 0; i < 400; ++i) scale.add(near_start.sample(random, sizes));
  EXPECT_NEAR(*scale.value(), before, 0.25 * before);
  for (int i = 0; i < 400; ++i) scale.add(later.sample(random, sizes));
  EXPECT_NEAR(*scale.value(), after, 0.25 * after);
}

TEST(NoiseScale, IsUnbiasedAtAnyTwoSizesAndWithUnequalParts) {
  const Quadratic quadratic(12, 2);
  const std::vector<int> cuts[] = {{1, 1},       {4, 4},  {2, 2, 2, 2, 2, 2, 2, 2},
                                   {1, 9, 2, 4}, {1, 15}, {7, 1}};
  for (size_t cut = 0; cut < std::size(cuts); ++cut) {
    RandomStream random(mix64(17, cut));
    constexpr int kUpdates = 6000;
    double sums[2] = {}, squares[2] = {};
    for (int update = 0; update < kUpdates; ++update) {
      NoiseScale one;  // after one update the corrected averages are its own estimates
      one.add(quadratic.sample(random, cuts[cut]));
      const double values[] = {one.norm_sq(), one.trace()};
      for (int i = 0; i < 2; ++i) {
        sums[i] += values[i];
        squares[i] += values[i] * values[i];
      }
    }
    const double truth[] = {quadratic.norm_sq(), quadratic.trace()};
    for (int i = 0; i < 2; ++i) {
      const double mean = sums[i] / kUpdates;
      const double error = std::sqrt((squares[i] / kUpdates - mean * mean) / kUpdates);
      EXPECT_NEAR(mean, truth[i], 4 * error) << "cut " << cut << ", estimate " << i;
      EXPECT_LT(error, 0.1 * truth[i]) << "too few updates to tell";
    }
  }
}

TEST(NoiseScale, SomePartsOfAnUpdateAreEnough) {
  // One process sees only its own micro-batches; the whole is what was reduced.
  const GradientPart first{2, 2 * 2 * 45.0};
  const GradientNorms norms = norms_of_parts(std::span(&first, 1), {8, 8 * 8 * 30.0});
  EXPECT_DOUBLE_EQ(norms.small_batch, 2);
  EXPECT_DOUBLE_EQ(norms.small_norm_sq, 45);
  EXPECT_DOUBLE_EQ(norms.big_batch, 8);
  EXPECT_DOUBLE_EQ(norms.big_norm_sq, 30);
}

TEST(NoiseScale, GoesOnWithTheSameBitsAfterARestore) {
  const Quadratic quadratic(5, 1);
  RandomStream random(9);
  NoiseScale straight(0.97), stopped(0.97);
  NoiseScale resumed(0.97);
  for (int i = 0; i < 60; ++i) {
    const GradientNorms norms = quadratic.sample(random, {3, 5});
    straight.add(norms);
    if (i < 30) stopped.add(norms);
    if (i == 30) resumed.restore(stopped.state());
    if (i >= 30) resumed.add(norms);
  }
  EXPECT_EQ(resumed.count(), 60);
  EXPECT_EQ(resumed.state(), straight.state());
  EXPECT_EQ(*resumed.value(), *straight.value());
}

TEST(NoiseScale, RefusesAStateThatCannotBe) {
  NoiseScale scale;
  scale.add({1, 3, 2, 2});
  const auto good = scale.state();
  for (const char* key : {"count", "norm_sq", "trace"}) {
    auto missing = good, broken = good;
    missing.erase(key);
    broken[key] = std::nan("");
    EXPECT_THROW(scale.restore(missing), Error) << key;
    EXPECT_THROW(scale.restore(broken), Error) << key;
  }
  auto negative = good;
  negative["count"] = -1;
  EXPECT_THROW(scale.restore(negative), Error);
  EXPECT_EQ(scale.state(), good) << "a refused state must change nothing";
  scale.restore({});
  EXPECT_EQ(scale.count(), 0);
}

}  // namespace
}  // namespace stretto::optim
