#include "image/augment_options.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stretto::image {
namespace {

TEST(AugmentOptions, DefaultsAreSound) {
  EXPECT_TRUE(augment_conflicts({}, "augment").empty());
  EXPECT_EQ(AugmentOptions{}.statistics().mean, kImageNetStatistics.mean);
  EXPECT_EQ(AugmentOptions{}.statistics().deviation, kImageNetStatistics.deviation);
}

TEST(AugmentOptions, RangesThatEndBeforeTheyBeginAreNamed) {
  AugmentOptions options;
  options.min_scale = 0.5;
  options.max_scale = 0.2;
  auto conflicts = augment_conflicts(options, "augment");
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].keys.front(), "augment.min_scale");
  EXPECT_EQ(conflicts[0].what, "is above augment.max_scale, 0.2");
  options.crop = "pad";
  EXPECT_TRUE(augment_conflicts(options, "augment").empty()) << "nothing reads them then";
  options.min_erasing_ratio = 9;
  EXPECT_TRUE(augment_conflicts(options, "augment").empty());
  options.erasing_probability = 0.5;
  options.max_erasing_ratio = 2;
  EXPECT_EQ(augment_conflicts(options, "augment").size(), 1U);
}

TEST(AugmentOptions, ThereAreThreeColours) {
  AugmentOptions options;
  options.mean = {0.5};
  options.std = {};
  const auto conflicts = augment_conflicts(options, "data");
  ASSERT_EQ(conflicts.size(), 2U);
  EXPECT_EQ(conflicts[0].keys.front(), "data.mean");
  EXPECT_EQ(conflicts[0].what, "has 1 number");
  EXPECT_EQ(conflicts[1].keys.front(), "data.std");
  EXPECT_THROW((void)options.statistics(), std::invalid_argument);
}

TEST(AugmentOptions, PixelsAreWholeNumbers) {
  AugmentOptions options;
  options.test_resize = {256, 256.5};
  const auto conflicts = augment_conflicts(options, "augment");
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].keys.front(), "augment.test_resize");
}

}  // namespace
}  // namespace stretto::image
