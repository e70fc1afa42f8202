#include "families/speech_synthesis/trim_silence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace stretto::tasks {
namespace {

// The mean square of each frame; the last frame may be shorter.
std::vector<double> powers_of(std::span<const float> samples, size_t frame) {
  std::vector<double> powers;
  for (size_t begin = 0; begin < samples.size(); begin += frame) {
    const auto part = samples.subspan(begin, std::min(frame, samples.size() - begin));
    double sum = 0;
    for (const float value : part) sum += static_cast<double>(value) * value;
    powers.push_back(sum / static_cast<double>(part.size()));
  }
  return powers;
}

}  // namespace

SoundPart sounding_part(std::span<const float> samples, double decibels, int64_t frame_samples,
                        int64_t margin) {
  const SoundPart all{.begin = 0, .end = std::ssize(samples)};
  if (decibels <= 0 || samples.empty()) return all;
  const auto powers = powers_of(samples, static_cast<size_t>(frame_samples));
  const double least = *std::ranges::max_element(powers) * std::pow(10.0, -decibels / 10);
  const auto is_loud = [&](double power) { return power > 0 && power >= least; };
  const auto first = std::ranges::find_if(powers, is_loud);
  if (first == powers.end()) return all;
  const auto behind = std::find_if(powers.rbegin(), powers.rend(), is_loud).base();
  const int64_t begin = (first - powers.begin()) * frame_samples - margin;
  const int64_t end = (behind - powers.begin()) * frame_samples + margin;
  return {.begin = std::max<int64_t>(0, begin), .end = std::min(all.end, end)};
}

}  // namespace stretto::tasks
