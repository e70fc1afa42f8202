#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/optimizer/step_numbers.h"

/// The optimizer steps on raw device pointers, defined in cuda_steps.cu; see cuda/launch.h for what
/// all such functions have in common. Each block of the grid does one entry of `blocks`.
namespace stretto::kernels::cuda {

/// Elements of one block of the grid: small enough that the last wave costs little.
constexpr int64_t kDeviceStepBlock = int64_t{1} << 13;

/// A table of runs, none longer than kDeviceStepBlock, in device memory.
template <class Numbers>
struct StepTable {
  const Run<Numbers>* blocks;
  int64_t count;
  cudaStream_t stream;
};

void step_adam(const StepTable<AdamScalars>& table, float* p, const float* g, float* m, float* v);
void step_momentum(const StepTable<MomentumScalars>& table, float* p, const float* g, float* u);
void step_adagrad(const StepTable<AdagradScalars>& table, float* p, const float* g, float* sum);
void step_ftrl(const StepTable<FtrlScalars>& table, float* p, const float* g, float* sum,
               float* linear);
void step_rmsprop(const StepTable<RmspropScalars>& table, float* p, const float* g, float* v,
                  float* u);
void step_lamb(const StepTable<LambScalars>& table, float* p, const float* m, const float* v);

/// These write one pair of sums for each block.
void sum_lamb(const StepTable<LambScalars>& table, const float* p, const float* g, float* m,
              float* v, SquareSums* sums);
void sum_squares(const StepTable<NormScalars>& table, const float* p, const float* g,
                 SquareSums* sums);

}  // namespace stretto::kernels::cuda
