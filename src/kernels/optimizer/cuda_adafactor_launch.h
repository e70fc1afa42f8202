#pragma once

#include <cuda_runtime_api.h>

#include "kernels/optimizer/adafactor_plan.h"
#include "kernels/optimizer/step_numbers.h"

/// The step of Adafactor on raw device pointers, defined in cuda_adafactor.cu; see cuda/launch.h
/// for what all such functions have in common.
namespace stretto::kernels::cuda {

/// A list of a plan in device memory.
template <class Chunk>
struct Chunks {
  const Chunk* first;
  int64_t count;
};

/// What a tensor's update is multiplied by, and its weights before.
struct FactorRate {
  float shrink, rate;
};

struct AdafactorMemory {
  Chunks<FactorTile> tiles;
  Chunks<FactorFold> folds;
  Chunks<FactorShares> share_chunks;
  Chunks<FactorBlock> blocks;
  Chunks<FactorTensor> tensors;
  float *partials, *shares;  ///< as long as the plan says
  SquareSums* sums;          ///< one for each of `blocks`
  FactorRate* rates;         ///< one for each of `tensors`
  float* params;
  const float* grads;
  float *rows, *columns;
};

/// Numbers of one step; optim/adafactor.h has the formulas.
struct AdafactorScalars {
  float grad;
  double share;     ///< k
  double lr, most;  ///< lr and 1 / sqrt(t)
};

/// Six launches, whatever the plan holds, and no word back to the host.
void step_adafactor(const AdafactorMemory& memory, const AdafactorScalars& scalars,
                    cudaStream_t stream);

}  // namespace stretto::kernels::cuda
