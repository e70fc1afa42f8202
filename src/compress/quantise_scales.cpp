#include "compress/quantise_scales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace stretto::compress {
namespace {

constexpr size_t kLanes = 8;  // sums in this many parts, the same on every processor
constexpr int kRefits = 3;

/// How far the range of weights may shrink, and in how many steps: few bits gain by clipping.
struct ShrinkGrid {
  int steps;
  float least;
};

ShrinkGrid grid_of(const store::QuantFormat& format) {
  if (format.bits <= 3) return {.steps = 24, .least = 0.3F};
  if (format.bits == 4) return {.steps = 20, .least = 0.5F};
  if (format.bits == 6) return {.steps = 12, .least = 0.75F};
  return {.steps = 8, .least = 0.9F};
}

float shrink_at(const ShrinkGrid& grid, int step) {
  return 1 - (1 - grid.least) * static_cast<float>(step) / static_cast<float>(grid.steps);
}

/// Codes of weights as floats, for loops that a compiler makes vectors of.
class Rounder {
 public:
  Rounder(const ScaleAndZero& choice, const store::QuantFormat& format)
      : inverse_(choice.scale == 0 ? 0 : 1 / choice.scale),
        scale_(choice.scale),
        lowest_(static_cast<float>(format.lowest_code() - choice.zero)),
        highest_(static_cast<float>(format.highest() - choice.zero)) {}

  /// The code less the zero. Adding and taking 1.5 * 2^23 away rounds to whole, ties to even.
  float steps(float weight) const {
    constexpr float kRounding = 12582912.0F;
    const float bounded = std::min(std::max(weight * inverse_, lowest_), highest_);
    return (bounded + kRounding) - kRounding;
  }
  float error(float weight) const { return weight - scale_ * steps(weight); }

 private:
  float inverse_, scale_, lowest_, highest_;
};

/// The sum of term(i) over n terms.
template <class Term>
double sum_of(size_t n, const Term& term) {
  constexpr size_t kBlock = 64 * kLanes;  // then in double
  double sum = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t end = std::min(n, begin + kBlock);
    std::array<float, kLanes> lanes{};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
    }
    for (; i < end; ++i) lanes[0] += term(i);
    for (const float lane : lanes) sum += static_cast<double>(lane);
  }
  return sum;
}

/// The nearest number of fp16 that is not smaller, of a positive one.
float half_above(float value) {
  uint16_t half = store::half_of(value);
  if (store::float_of_half(half) < value) ++half;
  return store::float_of_half(half);
}

float nearest_half(float value) {
  return store::float_of_half(store::half_of(value));
}

struct WeightRange {
  float lowest = 0, highest = 0;  ///< with 0 in between
};

WeightRange range_of(std::span<const float> weights) {
  WeightRange range;
  for (const float weight : weights) {
    range.lowest = std::min(range.lowest, weight);
    range.highest = std::max(range.highest, weight);
  }
  return range;
}

int8_t zero_of(float lowest, float scale, const store::QuantFormat& format) {
  if (scale == 0) return 0;
  const float zero = static_cast<float>(format.lowest()) - std::nearbyint(lowest / scale);
  return static_cast<int8_t>(
      std::clamp(zero, static_cast<float>(format.lowest()), static_cast<float>(format.highest())));
}

/// Keeps the better of what it is shown.
class Best {
 public:
  Best(std::span<const float> weights, std::span<const float> importance,
       const store::QuantFormat& format, const ScaleAndZero& first)
      : weights_(weights), importance_(importance), format_(format), choice_(first) {
    error_ = squared_error(weights, importance, first, format);
  }

  /// @return whether it is better
  bool show(const ScaleAndZero& choice) {
    if (choice.scale == 0 || !std::isfinite(choice.scale)) return false;
    const double error = squared_error(weights_, importance_, choice, format_);
    if (!(error < error_)) return false;
    error_ = error;
    choice_ = choice;
    return true;
  }

  /// The scale with the least error for the codes of the present one, until nothing is gained.
  void refit() {
    for (int i = 0; i < kRefits; ++i) {
      const Rounder rounder(choice_, format_);
      const auto weighed = [this](size_t at) {
        return importance_.empty() ? 1.0F : importance_[at];
      };
      const double above = sum_of(weights_.size(), [&](size_t at) {
        return weighed(at) * weights_[at] * rounder.steps(weights_[at]);
      });
      const double below = sum_of(weights_.size(), [&](size_t at) {
        const float steps = rounder.steps(weights_[at]);
        return weighed(at) * steps * steps;
      });
      if (below <= 0) return;
      const float scale = nearest_half(static_cast<float>(above / below));
      if (!show({.scale = scale, .zero = choice_.zero})) return;
    }
  }

  const ScaleAndZero& choice() const { return choice_; }

 private:
  std::span<const float> weights_, importance_;
  const store::QuantFormat& format_;
  ScaleAndZero choice_;
  double error_ = 0;
};

// Either end of the weights may have the side of the codes with one more.
void try_symmetric(const WeightRange& range, const store::QuantFormat& format, Best& best) {
  const float magnitude = std::max(-range.lowest, range.highest);
  const float sign = range.highest >= -range.lowest ? 1.0F : -1.0F;
  const float of_lowest = sign * magnitude / static_cast<float>(format.lowest_code());
  const float of_highest = sign * magnitude / static_cast<float>(format.highest());
  const ShrinkGrid grid = grid_of(format);
  for (int step = 0; step <= grid.steps; ++step) {
    const float shrink = shrink_at(grid, step);
    best.show({.scale = nearest_half(of_lowest * shrink), .zero = 0});
    best.show({.scale = nearest_half(of_highest * shrink), .zero = 0});
  }
}

// Each end shrinks by itself, in steps twice as wide.
void try_asymmetric(const WeightRange& range, const store::QuantFormat& format, Best& best) {
  const ShrinkGrid grid = grid_of(format);
  const auto steps = static_cast<float>(format.highest() - format.lowest());
  for (int low = 0; low <= grid.steps; low += 2) {
    for (int high = 0; high <= grid.steps; high += 2) {
      const float lowest = range.lowest * shrink_at(grid, low);
      const float highest = range.highest * shrink_at(grid, high);
      const float scale = nearest_half((highest - lowest) / steps);
      best.show({.scale = scale, .zero = zero_of(lowest, scale, format)});
    }
  }
}

}  // namespace

ScaleAndZero spanning_scale(std::span<const float> weights, const store::QuantFormat& format) {
  const WeightRange range = range_of(weights);
  if (range.lowest == range.highest) return {};
  if (!format.symmetric) {
    const auto steps = static_cast<float>(format.highest() - format.lowest());
    // The difference of two weights may be beyond fp32.
    const float scale = half_above(range.highest / steps - range.lowest / steps);
    return {.scale = scale, .zero = zero_of(range.lowest, scale, format)};
  }
  const auto below = static_cast<float>(-format.lowest_code());
  const auto above = static_cast<float>(format.highest());
  // Of the two signs the one with the smaller steps; the larger end has the longer side then.
  const float upright = std::max(-range.lowest / below, range.highest / above);
  const float inverted = std::max(-range.lowest / above, range.highest / below);
  return {.scale = inverted < upright ? -half_above(inverted) : half_above(upright), .zero = 0};
}

ScaleAndZero least_error_scale(std::span<const float> weights, std::span<const float> importance,
                               const store::QuantFormat& format) {
  const ScaleAndZero spanning = spanning_scale(weights, format);
  if (spanning.scale == 0 || !std::isfinite(spanning.scale)) return spanning;
  Best best(weights, importance, format, spanning);
  const WeightRange range = range_of(weights);
  if (format.symmetric) {
    try_symmetric(range, format, best);
  } else {
    try_asymmetric(range, format, best);
  }
  best.refit();
  return best.choice();
}

void round_to_codes(std::span<const float> weights, const ScaleAndZero& choice,
                    const store::QuantFormat& format, std::span<int8_t> codes) {
  const Rounder rounder(choice, format);
  for (size_t i = 0; i < weights.size(); ++i) {
    codes[i] = static_cast<int8_t>(static_cast<int>(rounder.steps(weights[i])) + choice.zero);
  }
}

double squared_error(std::span<const float> weights, std::span<const float> importance,
                     const ScaleAndZero& choice, const store::QuantFormat& format) {
  const Rounder rounder(choice, format);
  if (importance.empty()) {
    return sum_of(weights.size(), [&](size_t i) {
      const float error = rounder.error(weights[i]);
      return error * error;
    });
  }
  return sum_of(weights.size(), [&](size_t i) {
    const float error = rounder.error(weights[i]);
    return importance[i] * error * error;
  });
}

}  // namespace stretto::compress
