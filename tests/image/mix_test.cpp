#include "image/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace stretto::image {
namespace {

constexpr int64_t kSide = 20;

AugmentOptions mixing(double mixup, double cutmix) {
  AugmentOptions options;
  options.mixup_alpha = mixup;
  options.cutmix_alpha = cutmix;
  return options;
}

bool is_permutation_of(const std::vector<int64_t>& partners) {
  std::vector<int64_t> sorted = partners;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

/// Samples of which each has its number, and its place as a fraction.
std::vector<float> numbered_samples(size_t count) {
  constexpr size_t kSize = size_t{3} * kSide * kSide;
  std::vector<float> pixels(count * kSize);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<float>(i / kSize) + static_cast<float>(i % kSize) / 4096;
  }
  return pixels;
}

TEST(Mix, APlanIsAFunctionOfSeedEpochAndBatch) {
  const auto options = mixing(0.8, 1);
  const auto plan = [&](uint64_t seed, int64_t epoch, int64_t batch) {
    const MixPlan made =
        mix_plan(options, {.seed = seed, .epoch = epoch, .batch = batch}, 32, kSide);
    EXPECT_TRUE(is_permutation_of(made.partners));
    EXPECT_EQ(made.partners.size(), 32U);
    return made;
  };
  EXPECT_EQ(plan(1, 2, 3).partners, plan(1, 2, 3).partners);
  EXPECT_EQ(plan(1, 2, 3).share, plan(1, 2, 3).share);
  EXPECT_NE(plan(1, 2, 3).partners, plan(2, 2, 3).partners);
  EXPECT_NE(plan(1, 2, 3).partners, plan(1, 3, 3).partners);
  EXPECT_NE(plan(1, 2, 3).partners, plan(1, 2, 4).partners);
}

TEST(Mix, NothingIsMixedUnlessAsked) {
  EXPECT_EQ(mix_plan({}, {}, 32, kSide).kind, MixKind::kNone);
  EXPECT_EQ(mix_plan(mixing(1, 1), {}, 1, kSide).kind, MixKind::kNone) << "one alone";
  auto options = mixing(1, 0);
  options.mix_probability = 0;
  EXPECT_EQ(mix_plan(options, {}, 32, kSide).kind, MixKind::kNone);
}

TEST(Mix, KindsAreAsFrequentAsAsked) {
  auto options = mixing(1, 1);
  options.mix_probability = 0.8;
  options.switch_probability = 0.25;
  int mixups = 0, cuts = 0;
  for (int64_t batch = 0; batch < 2000; ++batch) {
    const MixKind kind = mix_plan(options, {.batch = batch}, 4, kSide).kind;
    mixups += kind == MixKind::kMixup ? 1 : 0;
    cuts += kind == MixKind::kCutmix ? 1 : 0;
  }
  EXPECT_NEAR(mixups, 1200, 80);
  EXPECT_NEAR(cuts, 400, 60);
  EXPECT_EQ(mix_plan(mixing(0, 1), {}, 4, kSide).kind, MixKind::kCutmix);
  EXPECT_EQ(mix_plan(mixing(1, 0), {}, 4, kSide).kind, MixKind::kMixup);
}

TEST(Mix, SharesAreOfTheBetaDistribution) {
  // Mean 1/2, variance 1 / (4 (2 alpha + 1)).
  for (const double alpha : {0.001, 0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    for (int64_t batch = 0; batch < 4000; ++batch) {
      const double share = mix_plan(mixing(alpha, 0), {.batch = batch}, 2, kSide).share;
      ASSERT_TRUE(share >= 0 && share <= 1) << alpha;
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / 4000, 0.5, 0.03) << alpha;
    EXPECT_NEAR(squares / 4000, 0.25 / (2 * alpha + 1), 0.012) << alpha;
  }
}

TEST(Mix, ABoxHasTheAreaOfItsShare) {
  double largest = 0;
  for (int64_t batch = 0; batch < 500; ++batch) {
    const MixPlan plan = mix_plan(mixing(0, 1), {.batch = batch}, 4, kSide);
    EXPECT_GE(plan.box.top, 0);
    EXPECT_GE(plan.box.left, 0);
    EXPECT_LE(plan.box.top + plan.box.height, kSide);
    EXPECT_LE(plan.box.left + plan.box.width, kSide);
    const double area = static_cast<double>(plan.box.height * plan.box.width) / (kSide * kSide);
    EXPECT_NEAR(plan.share, 1 - area, 1e-12);
    largest = std::max(largest, area);
  }
  EXPECT_GT(largest, 0.5);
}

TEST(Mix, MixupAddsThePartner) {
  MixPlan plan{.kind = MixKind::kMixup, .partners = {1, 2, 0, 3}, .share = 0.75};
  const auto before = numbered_samples(4);
  auto pixels = before;
  mix(plan, kSide, PixelLayout::kPlanes, pixels);
  const size_t size = before.size() / 4;
  for (size_t sample = 0; sample < 4; ++sample) {
    const auto partner = static_cast<size_t>(plan.partners[sample]);
    for (const size_t i : {size_t{0}, size_t{57}, size - 1}) {
      EXPECT_NEAR(pixels[sample * size + i],
                  0.75 * before[sample * size + i] + 0.25 * before[partner * size + i], 1e-5);
    }
  }
}

TEST(Mix, CutmixCopiesABoxOfThePartnerInBothLayouts) {
  const MixPlan plan{.kind = MixKind::kCutmix,
                     .partners = {1, 0},
                     .share = 0.9,
                     .box = {.top = 3, .left = 5, .height = 4, .width = 6}};
  const auto before = numbered_samples(2);
  const size_t size = before.size() / 2;
  for (const auto layout : {PixelLayout::kPlanes, PixelLayout::kChannelsLast}) {
    auto pixels = before;
    mix(plan, kSide, layout, pixels);
    for (size_t c = 0; c < 3; ++c) {
      for (size_t y = 0; y < kSide; ++y) {
        for (size_t x = 0; x < kSide; ++x) {
          const bool is_within = y >= 3 && y < 7 && x >= 5 && x < 11;
          const size_t at = layout == PixelLayout::kPlanes ? (c * kSide + y) * kSide + x
                                                           : (y * kSide + x) * 3 + c;
          EXPECT_EQ(pixels[at], before[is_within ? size + at : at]);
          EXPECT_EQ(pixels[size + at], before[is_within ? at : size + at]);
        }
      }
    }
  }
}

TEST(Mix, RefusesAnotherBatch) {
  const MixPlan plan{.kind = MixKind::kMixup, .partners = {1, 0}, .share = 0.5};
  std::vector<float> pixels(10);
  EXPECT_THROW(mix(plan, kSide, PixelLayout::kPlanes, pixels), std::invalid_argument);
  mix({}, kSide, PixelLayout::kPlanes, pixels);
}

}  // namespace
}  // namespace stretto::image
