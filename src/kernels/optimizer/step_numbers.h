#pragma once

#include <cstdint>
#include <limits>

/// Numbers of the flat optimizer steps, shared by the loops of every processor level and by CUDA:
/// no libtorch. `steps.h` has the formulas.
namespace stretto::kernels {

/// Elements [begin, end) of flat buffers that take one set of numbers.
template <class Numbers>
struct Run {
  int64_t begin, end;
  Numbers numbers;
};

/// A moving average with decay beta: a = keep a + (keep_rest a + gain x).
///
/// 1 - beta is worked out in double, since of 0.99999 in fp32 it would be off by 1.4e-3; keep_rest
/// is what fp32 lost of beta, or else the average of a constant would be off by as much.
struct MovingAverage {
  float keep, keep_rest, gain;
};

inline MovingAverage moving_average(double beta) {
  const float keep = static_cast<float>(beta);
  return {keep, static_cast<float>(beta - static_cast<double>(keep)), static_cast<float>(1 - beta)};
}

struct AdamScalars {
  MovingAverage first, second;
  float grad_scale, coupled_decay, shrink, step_size, inverse_root_correction, epsilon;
};

struct MomentumScalars {
  float grad, decay;  ///< d = grad g + decay p
  float carry, gain;  ///< u = carry u + gain d
  float ahead, look;  ///< p -= ahead d + look u
};

struct AdagradScalars {
  float grad, decay, rate, epsilon;
};

struct FtrlScalars {
  float grad, decay;
  float inverse_rate, inverse_rate_before;  ///< 1 / rate of this update and of the one before
  float accumulator;                        ///< what the sum of squares begins with
  float l1, l2;                             ///< l2 twice: what it adds to the divisor
};

struct RmspropScalars {
  float grad, decay;
  MovingAverage second;
  float epsilon, momentum, rate;
};

struct LambScalars {
  MovingAverage first, second;
  float grad;
  float inverse_correction, inverse_root_correction, epsilon;
  float decay, rate;
};

/// One row of a matrix whose second moments are row * columns[j]: the update of element j is
/// grad g / sqrt(max(row columns[j], floor)).
struct FactoredScalars {
  float grad, row, floor;
  float shrink, rate;  ///< p = shrink p - rate update
};

/// The constants of torch.optim.Adafactor: exponent of the moving mean, the least root mean square
/// of weights, the largest one of an update, and epsilon of gradients, as a magnitude.
constexpr double kAdafactorDecay = -0.8, kAdafactorMinRms = 1e-3, kAdafactorMaxUpdateRms = 1.0;
constexpr double kAdafactorEpsilon = std::numeric_limits<float>::epsilon();

struct NormScalars {
  float grad, decay;  ///< the update is grad g + decay p
};

/// Sums of squares of a block of weights and of its update.
struct SquareSums {
  double weight = 0, update = 0;
};

/// Runs are cut at multiples of so many elements: what a thread does at a time, and what is summed
/// before anything else, so that no result depends on threads.
constexpr int64_t kStepBlock = int64_t{1} << 15;

}  // namespace stretto::kernels
