#include "audio/augment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "audio/frame_loops.h"
#include "audio/resample.h"

namespace stretto::audio {
namespace {

constexpr double kDecibelsOfTenfold = 20;

/// Neighbours among `places`.
struct Stripe {
  int64_t begin = 0, size = 0;
};

Stripe draw_stripe(int64_t places, int64_t most, RandomStream& random) {
  const auto bound = static_cast<uint64_t>(std::clamp<int64_t>(most, 0, places));
  const auto size = static_cast<int64_t>(random.below(bound + 1));
  const auto begin = static_cast<int64_t>(random.below(static_cast<uint64_t>(places - size) + 1));
  return {.begin = begin, .size = size};
}

}  // namespace

std::vector<float> at_speed(std::span<const float> samples, int64_t rate, double factor) {
  return resampled(samples, std::llround(static_cast<double>(rate) * factor), rate);
}

void add_noise(std::span<float> samples, double decibels, RandomStream& random) {
  const double deviation = std::pow(10.0, decibels / kDecibelsOfTenfold);
  frame_loops().noise(random.next64(), std::ssize(samples), static_cast<float>(deviation),
                      samples.data());
}

void add_sound(std::span<float> samples, std::span<const float> noise, size_t begin,
               double decibels) {
  if (noise.empty()) return;
  double signal_power = 0, noise_power = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double added = noise[(begin + i) % noise.size()];
    signal_power += static_cast<double>(samples[i]) * samples[i];
    noise_power += added * added;
  }
  if (!(signal_power > 0) || !(noise_power > 0)) return;
  const auto gain = static_cast<float>(std::sqrt(signal_power / noise_power) *
                                       std::pow(10.0, -decibels / kDecibelsOfTenfold));
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] += gain * noise[(begin + i) % noise.size()];
  }
}

void mask(Features& features, const MaskOptions& options, RandomStream& random) {
  const int64_t frames = features.num_frames();
  for (int64_t i = 0; i < options.num_feature_masks; ++i) {
    const Stripe stripe = draw_stripe(features.width, options.most_features, random);
    for (int64_t f = 0; f < frames; ++f) {
      std::fill_n(features.values.begin() + f * features.width + stripe.begin, stripe.size,
                  options.value);
    }
  }
  const auto share = static_cast<int64_t>(options.most_frame_share * static_cast<double>(frames));
  for (int64_t i = 0; i < options.num_frame_masks; ++i) {
    const Stripe stripe = draw_stripe(frames, std::min(options.most_frames, share), random);
    std::fill_n(features.values.begin() + stripe.begin * features.width,
                stripe.size * features.width, options.value);
  }
}

}  // namespace stretto::audio
