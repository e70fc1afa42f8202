#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "image/augment_options.h"
#include "image/image.h"
#include "image/transform.h"

/// Mixtures of two samples of a batch: mixup (Zhang et al. 2018, arXiv:1710.09412) and CutMix (Yun
/// et al. 2019, arXiv:1905.04899).
namespace stretto::image {

enum class MixKind : uint8_t { kNone, kMixup, kCutmix };

/// How a batch is mixed. Sample i becomes
///     mixup:  share * x_i + (1 - share) * x_partners[i]
///     CutMix: x_i, and x_partners[i] within `box`
/// and its loss is share * loss(label_i) + (1 - share) * loss(label_partners[i]).
struct MixPlan {
  MixKind kind = MixKind::kNone;
  std::vector<int64_t> partners = {};  ///< [count], a permutation; empty for kNone
  double share = 1;                    ///< of a sample itself, lambda in the articles
  Region box = {};                     ///< of CutMix; may be empty, then `share` is 1
};

/// Which batch is mixed. The plan is a function of these numbers and of `options`.
struct MixKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t batch = 0;  ///< its number in the epoch
};

/// The plan of a batch, as torchvision's MixUp and CutMix draw it: one lambda for the batch.
/// @param count  samples of the batch; one alone is not mixed
/// @param side   of its pictures, in pixels
MixPlan mix_plan(const AugmentOptions& options, const MixKey& key, int64_t count, int64_t side);

/// Mixes the pixels of a batch, in place.
/// @param pixels  [count, 3, side, side] or [count, side, side, 3]
/// Throws std::invalid_argument for a batch of another size than the plan's.
void mix(const MixPlan& plan, int64_t side, PixelLayout layout, std::span<float> pixels);

}  // namespace stretto::image
