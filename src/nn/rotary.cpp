#include "nn/rotary.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stretto::nn {
namespace {

constexpr double kPaperBase = 10000;
constexpr double kCircle = 2 * std::numbers::pi;

double llama3(double frequency, const RotaryOptions& o) {
  const double turns = static_cast<double>(o.original_positions) * frequency / kCircle;
  if (turns < o.low_frequency_factor) return frequency / o.factor;
  if (turns > o.high_frequency_factor) return frequency;
  const double share =
      (turns - o.low_frequency_factor) / (o.high_frequency_factor - o.low_frequency_factor);
  return (1 - share) * frequency / o.factor + share * frequency;
}

/// The passage of YaRN, in pairs of columns.
struct Passage {
  double begin, end;

  Passage(const RotaryOptions& o, int64_t width) {
    const auto columns = static_cast<double>(width);
    const auto pair_of = [&](double rotations) {
      return columns * std::log(static_cast<double>(o.original_positions) / (rotations * kCircle)) /
             (2 * std::log(o.base));
    };
    begin = std::max(std::floor(pair_of(o.fast_rotations)), 0.0);
    end = std::min(std::ceil(pair_of(o.slow_rotations)), columns - 1);
    if (begin == end) end += 0.001;
  }
  double slowed(double pair) const { return std::clamp((pair - begin) / (end - begin), 0.0, 1.0); }
};

}  // namespace

kernels::RotaryAngles rotary_angles(const RotaryOptions& options, int64_t width) {
  TORCH_CHECK(width > 0 && width % 2 == 0, "[rotary] heads must have an even width, got ", width);
  kernels::RotaryAngles angles;
  if (options.scaling == "none" && options.base == kPaperBase) return angles;
  const Passage passage(options, width);
  angles.frequencies = at::empty({width / 2}, at::kDouble);
  double* to = angles.frequencies.data_ptr<double>();
  for (int64_t j = 0; j < width / 2; ++j) {
    const double pair = static_cast<double>(j);
    const double own = std::pow(options.base, -2 * pair / static_cast<double>(width));
    double frequency = own;
    if (options.scaling == "linear") frequency = own / options.factor;
    if (options.scaling == "llama3") frequency = llama3(own, options);
    if (options.scaling == "yarn") {
      const double slowed = passage.slowed(pair);
      frequency = own / options.factor * slowed + own * (1 - slowed);
    }
    to[j] = frequency;
  }
  if (options.scaling == "yarn") {
    angles.factor = options.attention_factor > 0 ? options.attention_factor
                                                 : 0.1 * std::log(options.factor) + 1;
  }
  return angles;
}

}  // namespace stretto::nn
