#include "image/auto_augment.h"

#include <cmath>
#include <cstddef>

#include "image/policy_changes.h"
#include "image/transform.h"

namespace stretto::image {
namespace {

/// The strongest amount of each kind of change.
struct PolicyRange {
  double shear = 0, degrees = 0, factor = 0;
  double right = 0, down = 0;  ///< pixels
  double bits = 0;             ///< that are taken away
};

// torchvision's ranges: of RandAugment, and of TrivialAugmentWide.
constexpr double kRandShift = 150.0 / 331;  // of the picture's size
constexpr double kTrivialShift = 32;        // pixels

PolicyRange rand_augment_range(int64_t height, int64_t width) {
  return {.shear = 0.3,
          .degrees = 30,
          .factor = 0.9,
          .right = kRandShift * static_cast<double>(width),
          .down = kRandShift * static_cast<double>(height),
          .bits = 4};
}

constexpr PolicyRange kTrivialRange{.shear = 0.99,
                                    .degrees = 135,
                                    .factor = 0.99,
                                    .right = kTrivialShift,
                                    .down = kTrivialShift,
                                    .bits = 6};

bool has_direction(PolicyChange change) {
  return change >= PolicyChange::kShearX && change <= PolicyChange::kSharpness;
}

/// @param share  of the strongest, in [0, 1]
double amount_of(PolicyChange change, double share, const PolicyRange& range) {
  switch (change) {
    case PolicyChange::kShearX:
    case PolicyChange::kShearY:
      return share * range.shear;
    case PolicyChange::kTranslateX:
      return share * range.right;
    case PolicyChange::kTranslateY:
      return share * range.down;
    case PolicyChange::kRotate:
      return share * range.degrees;
    case PolicyChange::kBrightness:
    case PolicyChange::kColor:
    case PolicyChange::kContrast:
    case PolicyChange::kSharpness:
      return share * range.factor;
    case PolicyChange::kPosterize:
      return 8 - std::nearbyint(share * range.bits);
    case PolicyChange::kSolarize:
      return 255 * (1 - share);
    case PolicyChange::kIdentity:
    case PolicyChange::kAutoContrast:
    case PolicyChange::kEqualize:
      break;
  }
  return 0;
}

PolicyStep drawn_step(PolicyChange change, int64_t strength, const PolicyRange& range,
                      RandomStream& random) {
  const double share = static_cast<double>(strength) / static_cast<double>(kNumStrengths - 1);
  const double amount = amount_of(change, share, range);
  // Drawn for any change, so that the steps behind it do not depend on it.
  const bool turns_round = random.below(2) == 1;
  return {.change = change, .amount = has_direction(change) && turns_round ? -amount : amount};
}

PolicyChange draw_change(RandomStream& random) {
  return static_cast<PolicyChange>(random.below(static_cast<uint64_t>(kNumPolicyChanges)));
}

}  // namespace

std::vector<PolicyStep> draw_rand_augment(int64_t num_ops, int64_t magnitude, int64_t height,
                                          int64_t width, RandomStream& random) {
  std::vector<PolicyStep> steps;
  const PolicyRange range = rand_augment_range(height, width);
  for (int64_t i = 0; i < num_ops; ++i) {
    const PolicyChange change = draw_change(random);
    steps.push_back(drawn_step(change, magnitude, range, random));
  }
  return steps;
}

PolicyStep draw_trivial_augment(RandomStream& random) {
  const PolicyChange change = draw_change(random);
  const auto strength = static_cast<int64_t>(random.below(static_cast<uint64_t>(kNumStrengths)));
  return drawn_step(change, strength, kTrivialRange, random);
}

void apply(const PolicyStep& step, Image& image) {
  const double amount = step.amount;
  const auto pixels = static_cast<int64_t>(amount);  // towards 0
  switch (step.change) {
    case PolicyChange::kIdentity:
      return;
    case PolicyChange::kShearX:
      image = sheared_x(image, amount);
      return;
    case PolicyChange::kShearY:
      image = sheared_y(image, amount);
      return;
    case PolicyChange::kTranslateX:
      image = translated(image, pixels, 0);
      return;
    case PolicyChange::kTranslateY:
      image = translated(image, 0, pixels);
      return;
    case PolicyChange::kRotate:
      image = rotated(image, amount);
      return;
    case PolicyChange::kBrightness:
      return change_brightness(image, 1 + amount);
    case PolicyChange::kColor:
      return change_saturation(image, 1 + amount);
    case PolicyChange::kContrast:
      return change_contrast(image, 1 + amount);
    case PolicyChange::kSharpness:
      return change_sharpness(image, 1 + amount);
    case PolicyChange::kPosterize:
      return posterize(image, static_cast<int>(pixels));
    case PolicyChange::kSolarize:
      return solarize(image, amount);
    case PolicyChange::kAutoContrast:
      return auto_contrast(image);
    case PolicyChange::kEqualize:
      return equalize(image);
  }
}

}  // namespace stretto::image
