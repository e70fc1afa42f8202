#pragma once

#include <cstdint>
#include <limits>

/// Numbers of the flat optimizer steps, shared by the loops of every processor level and by CUDA:
/// no libtorch. `optimizer_steps.h` has the formulas.
namespace stretto::kernels {

/// Elements [begin, end) of flat buffers that take one set of numbers.
template <class Numbers>
struct Run {
  int64_t begin, end;
  Numbers numbers;
};

struct AdamScalars {
  float beta1, beta2, grad_scale, coupled_decay, shrink, step_size, inverse_root_correction,
      epsilon;
};

struct MomentumScalars {
  float grad, decay;  ///< d = grad g + decay p
  float carry, gain;  ///< u = carry u + gain d
  float ahead, look;  ///< p -= ahead d + look u
};

struct AdagradScalars {
  float grad, decay, rate, epsilon;
};

struct RmspropScalars {
  float grad, decay, alpha, epsilon, momentum, rate;
};

struct LambScalars {
  float beta1, beta2, grad;
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

/// Sums of squares of a piece of weights and of its update.
struct SquareSums {
  double weight = 0, update = 0;
};

/// Runs are cut at multiples of so many elements: what a thread does at a time, and what is summed
/// before anything else, so that no result depends on threads.
constexpr int64_t kStepBlock = int64_t{1} << 15;

}  // namespace stretto::kernels
