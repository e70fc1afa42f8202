#pragma once

#include <cstdint>
#include <span>

#include "store/quantised.h"

/// The scale and zero of weights that share them. No libtorch.
namespace stretto::compress {

struct ScaleAndZero {
  float scale = 0;  ///< a number of fp16; infinite where fp16 has none so large
  int8_t zero = 0;

  bool operator==(const ScaleAndZero&) const = default;
};

/// The smallest scale with which no finite weight is clipped (by more than the rounding of a zero).
ScaleAndZero spanning_scale(std::span<const float> weights, const store::QuantFormat& format);

/// The best of a grid of scales that clip more and more, then refitted to the codes that it gives:
/// never worse than the spanning one. Minimises the sum of importance * (weight - rounded)^2.
/// @param importance  of each weight; empty: all the same
ScaleAndZero least_error_scale(std::span<const float> weights, std::span<const float> importance,
                               const store::QuantFormat& format);

/// Writes the nearest code of each weight, ties to even.
void round_to_codes(std::span<const float> weights, const ScaleAndZero& choice,
                    const store::QuantFormat& format, std::span<int8_t> codes);
/// The weight that a code stands for.
inline float weight_of(int8_t code, const ScaleAndZero& choice) {
  return choice.scale * static_cast<float>(code - choice.zero);
}

/// The sum of importance * (weight - rounded)^2.
double squared_error(std::span<const float> weights, std::span<const float> importance,
                     const ScaleAndZero& choice, const store::QuantFormat& format);

}  // namespace stretto::compress
