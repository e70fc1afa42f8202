#include "image/auto_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random_streams.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using enum PolicyChange;

/// The amounts that were drawn of each change.
using Amounts = std::map<PolicyChange, std::vector<double>>;

Amounts rand_augment_amounts(int64_t magnitude) {
  Amounts amounts;
  for (int64_t sample = 0; sample < 2000; ++sample) {
    auto random = streams::augmentation(3, 0, sample);
    for (const auto& step : draw_rand_augment(2, magnitude, 331, 662, random)) {
      amounts[step.change].push_back(step.amount);
    }
  }
  return amounts;
}

TEST(AutoAugment, RandAugmentHasTorchvisionsStrengths) {
  // torchvision.transforms.RandAugment._augmentation_space(31, (331, 662))[...][0][9]
  const std::map<PolicyChange, double> wanted{
      {kIdentity, 0},     {kShearX, 0.09},    {kShearY, 0.09},     {kTranslateX, 90},
      {kTranslateY, 45},  {kRotate, 9},       {kBrightness, 0.27}, {kColor, 0.27},
      {kContrast, 0.27},  {kSharpness, 0.27}, {kPosterize, 7},     {kSolarize, 178.5},
      {kAutoContrast, 0}, {kEqualize, 0}};
  const Amounts amounts = rand_augment_amounts(9);
  ASSERT_EQ(amounts.size(), wanted.size()) << "every change is drawn";
  for (const auto& [change, amount] : wanted) {
    const auto& drawn = amounts.at(change);
    EXPECT_NEAR(static_cast<double>(drawn.size()), 4000.0 / 14, 80);
    for (const double value : drawn) EXPECT_NEAR(std::abs(value), amount, 1e-9);
    const bool has_both = std::ranges::count_if(drawn, [](double v) { return v < 0; }) > 0;
    EXPECT_EQ(has_both, change >= kShearX && change <= kSharpness);
  }
}

TEST(AutoAugment, TheWeakestStrengthChangesLittle) {
  const Amounts amounts = rand_augment_amounts(0);
  EXPECT_EQ(amounts.at(kPosterize).front(), 8);
  EXPECT_EQ(amounts.at(kSolarize).front(), 255);
  EXPECT_EQ(std::abs(amounts.at(kRotate).front()), 0);
}

TEST(AutoAugment, TrivialAugmentTakesAnyStrength) {
  double most_turn = 0, most_shear = 0, least_bits = 8, most_shift = 0;
  for (int64_t sample = 0; sample < 20000; ++sample) {
    auto random = streams::augmentation(3, 0, sample);
    const PolicyStep step = draw_trivial_augment(random);
    if (step.change == kRotate) most_turn = std::max(most_turn, step.amount);
    if (step.change == kShearX) most_shear = std::max(most_shear, -step.amount);
    if (step.change == kPosterize) least_bits = std::min(least_bits, step.amount);
    if (step.change == kTranslateY) most_shift = std::max(most_shift, step.amount);
  }
  EXPECT_EQ(most_turn, 135);
  EXPECT_NEAR(most_shear, 0.99, 1e-12);
  EXPECT_EQ(least_bits, 2);
  EXPECT_EQ(most_shift, 32);
}

TEST(AutoAugment, EveryChangeIsDone) {
  const Image image = test::speckled(40, 40);
  const std::map<PolicyChange, double> amounts{
      {kShearX, 0.3},     {kShearY, -0.3},    {kTranslateX, 3.9}, {kTranslateY, -3},
      {kRotate, 20},      {kBrightness, 0.5}, {kColor, -0.5},     {kContrast, 0.5},
      {kSharpness, -0.9}, {kPosterize, 4},    {kSolarize, 100}};
  for (const auto& [change, amount] : amounts) {
    Image changed = image;
    apply({.change = change, .amount = amount}, changed);
    EXPECT_NE(changed.pixels, image.pixels) << static_cast<int>(change);
    EXPECT_EQ(changed.pixels.size(), image.pixels.size());
  }
  Image same = image;
  apply({.change = kIdentity}, same);
  EXPECT_EQ(same.pixels, image.pixels);
  Image moved = image;
  apply({.change = kTranslateX, .amount = 3.9}, moved);
  EXPECT_EQ(moved.plane(0)[3], image.plane(0)[0]) << "by whole pixels";
}

}  // namespace
}  // namespace stretto::image
