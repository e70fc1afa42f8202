#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "image/image.h"

/// Policies of augmentation that need no search, as torchvision has them.
namespace stretto::image {

enum class PolicyChange : uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int64_t kNumPolicyChanges = 14;
/// Strengths of a change: 0 is the weakest, kNumStrengths - 1 the strongest.
inline constexpr int64_t kNumStrengths = 31;

/// One change of a policy, with what was drawn for it.
struct PolicyStep {
  PolicyChange change = PolicyChange::kIdentity;
  /// Slope of a shear; pixels to the right or down; degrees anticlockwise; what is added to a
  /// factor of 1; bits; threshold.
  double amount = 0;

  bool operator==(const PolicyStep&) const = default;
};

/// RandAugment (Cubuk et al. 2020, arXiv:1909.13719): `num_ops` changes, all of one strength, in
/// either direction.
/// @param magnitude  in [0, kNumStrengths)
std::vector<PolicyStep> draw_rand_augment(int64_t num_ops, int64_t magnitude, int64_t height,
                                          int64_t width, RandomStream& random);

/// TrivialAugmentWide (Müller and Hutter 2021, arXiv:2103.10158): one change of any strength.
PolicyStep draw_trivial_augment(RandomStream& random);

/// Nearest pixels, and black outside, are what torchvision takes by default.
void apply(const PolicyStep& step, Image& image);

}  // namespace stretto::image
