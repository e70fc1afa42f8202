#include "image/mix.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/random.h"
#include "base/random_streams.h"

namespace stretto::image {
namespace {

/// The logarithm of a number of the gamma distribution (Marsaglia and Tsang 2000), which for small
/// `shape` is often too small for a double.
double draw_log_gamma(double shape, RandomStream& random) {
  // Theirs is for shape >= 1; Gamma(shape) = Gamma(shape + 1) * U^(1 / shape).
  const double boost = shape < 1 ? std::log(1 - random.uniform()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double root = 1 + c * x;
    const double u = 1 - random.uniform();
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < x * x / 2 + d * (1 - v + std::log(v))) return std::log(d * v) + boost;
  }
}

double draw_beta(double alpha, RandomStream& random) {
  const double a = draw_log_gamma(alpha, random), b = draw_log_gamma(alpha, random);
  return 1 / (1 + std::exp(b - a));
}

/// The box of CutMix, of the area 1 - share before it is cut at the edges.
Region draw_box(double share, int64_t side, RandomStream& random) {
  const auto x = static_cast<int64_t>(random.below(static_cast<uint64_t>(side)));
  const auto y = static_cast<int64_t>(random.below(static_cast<uint64_t>(side)));
  const auto half = static_cast<int64_t>(0.5 * std::sqrt(1 - share) * static_cast<double>(side));
  const int64_t top = std::max<int64_t>(y - half, 0), left = std::max<int64_t>(x - half, 0);
  return {.top = top,
          .left = left,
          .height = std::min(y + half, side) - top,
          .width = std::min(x + half, side) - left};
}

/// What a sample takes from its partner, in place.
void mix_sample(const MixPlan& plan, int64_t side, PixelLayout layout, float* sample,
                const float* partner) {
  if (plan.kind == MixKind::kMixup) {
    const auto own = static_cast<float>(plan.share), other = static_cast<float>(1 - plan.share);
    for (int64_t i = 0; i < kChannels * side * side; ++i) {
      sample[i] = own * sample[i] + other * partner[i];
    }
    return;
  }
  const bool is_planes = layout == PixelLayout::kPlanes;
  const int64_t planes = is_planes ? kChannels : 1, width = is_planes ? 1 : kChannels;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = plan.box.top; y < plan.box.top + plan.box.height; ++y) {
      const int64_t begin = ((plane * side + y) * side + plan.box.left) * width;
      std::copy_n(partner + begin, plan.box.width * width, sample + begin);
    }
  }
}

}  // namespace

MixPlan mix_plan(const AugmentOptions& options, const MixKey& key, int64_t count, int64_t side) {
  if (!options.mixes() || count < 2) return {};
  RandomStream random = streams::batch_mix(key.seed, key.epoch, key.batch);
  // All is drawn whatever comes of it.
  const bool is_mixed = random.uniform() < options.mix_probability;
  const bool is_switched = random.uniform() < options.switch_probability;
  const uint64_t order = random.next64();
  if (!is_mixed) return {};
  MixPlan plan;
  const bool cuts = options.cutmix_alpha > 0 && (options.mixup_alpha <= 0 || is_switched);
  plan.kind = cuts ? MixKind::kCutmix : MixKind::kMixup;
  plan.share = draw_beta(cuts ? options.cutmix_alpha : options.mixup_alpha, random);
  if (cuts) {
    plan.box = draw_box(plan.share, side, random);
    plan.share = 1 - static_cast<double>(plan.box.height * plan.box.width) /
                         static_cast<double>(side * side);
  }
  const Permutation partner(static_cast<uint64_t>(count), order);
  for (int64_t i = 0; i < count; ++i) {
    plan.partners.push_back(static_cast<int64_t>(partner(static_cast<uint64_t>(i))));
  }
  return plan;
}

void mix(const MixPlan& plan, int64_t side, PixelLayout layout, std::span<float> pixels) {
  if (plan.kind == MixKind::kNone) return;
  const size_t size = static_cast<size_t>(kChannels * side * side), count = plan.partners.size();
  if (pixels.size() != count * size) {
    throw std::invalid_argument("mix: a plan for " + std::to_string(count) + " pictures of " +
                                std::to_string(size) + " numbers, and " +
                                std::to_string(pixels.size()) + " numbers");
  }
  // Along each cycle a sample is mixed before its own pixels are asked for, but for the first.
  std::vector<bool> is_done(count);
  std::vector<float> first(size);
  for (size_t begin = 0; begin < count; ++begin) {
    if (is_done[begin]) continue;
    std::copy_n(pixels.data() + begin * size, size, first.data());
    size_t sample = begin;
    while (!is_done[sample]) {
      is_done[sample] = true;
      const auto partner = static_cast<size_t>(plan.partners[sample]);
      const float* from = partner == begin ? first.data() : pixels.data() + partner * size;
      mix_sample(plan, side, layout, pixels.data() + sample * size, from);
      sample = partner;
    }
  }
}

}  // namespace stretto::image
