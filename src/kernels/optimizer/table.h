#pragma once

#include <cstdint>

#include "kernels/optimizer/step_numbers.h"

namespace stretto::kernels::cpu {

using kernels::AdamScalars;

/// Loops of the flat optimizer steps but Adam's over elements [begin, end); steps.h has the
/// formulas.
struct Steps {
  void (*momentum)(float* params, const float* grads, float* velocity, int64_t begin, int64_t end,
                   const MomentumScalars& scalars);
  void (*adagrad)(float* params, const float* grads, float* sum, int64_t begin, int64_t end,
                  const AdagradScalars& scalars);
  void (*ftrl)(float* params, const float* grads, float* sum, float* linear, int64_t begin,
               int64_t end, const FtrlScalars& scalars);
  void (*rmsprop)(float* params, const float* grads, float* v, float* velocity, int64_t begin,
                  int64_t end, const RmspropScalars& scalars);
  SquareSums (*lamb_moments)(const float* params, const float* grads, float* m, float* v,
                             int64_t begin, int64_t end, const LambScalars& scalars);
  void (*lamb_apply)(float* params, const float* m, const float* v, int64_t begin, int64_t end,
                     const LambScalars& scalars);
  /// sums[j] += (grad g[j])^2
  void (*add_squares)(const float* grads, int64_t count, float grad, float* sums);
  SquareSums (*factored_sums)(const float* params, const float* grads, const float* columns,
                              int64_t count, const FactoredScalars& scalars);
  void (*factored_apply)(float* params, const float* grads, const float* columns, int64_t count,
                         const FactoredScalars& scalars);
  SquareSums (*squares)(const float* params, const float* grads, int64_t begin, int64_t end,
                        const NormScalars& scalars);
};

}  // namespace stretto::kernels::cpu
