#include "kernels/optimizer/steps.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <initializer_list>

#include "kernels/cpu/table.h"
#include "kernels/optimizer/cuda_steps.h"
#include "kernels/optimizer/reference.h"

namespace stretto::kernels {
namespace {

enum class Backend { kCpu, kCuda, kReference };

/// Where to step buffers, after a check that they and the runs fit together.
template <class Numbers>
Backend backend_of(std::initializer_list<const at::Tensor*> buffers,
                   std::span<const Run<Numbers>> runs, const char* name) {
  const at::Tensor& first = **buffers.begin();
  for (const at::Tensor* buffer : buffers)
    TORCH_CHECK(buffer->dim() == 1 && buffer->numel() == first.numel() && buffer->is_contiguous() &&
                    buffer->device() == first.device(),
                "[kernels] ", name,
                ": buffers must be flat, contiguous, of one length and on one "
                "device");
  for (const auto& run : runs)
    TORCH_CHECK(run.begin >= 0 && run.begin <= run.end && run.end <= first.numel(), "[kernels] ",
                name, ": elements [", run.begin, ", ", run.end, ") are outside buffers of ",
                first.numel());
  const bool fp32 = std::all_of(buffers.begin(), buffers.end(), [](const at::Tensor* buffer) {
    return buffer->scalar_type() == at::kFloat;
  });
  if (fp32 && first.is_cpu()) return Backend::kCpu;
  return fp32 && cuda::takes_steps(first) ? Backend::kCuda : Backend::kReference;
}

/// Elements of a run that one thread does. Cuts are at multiples of kStepBlock, so that a process
/// that steps a slice with such bounds adds up the same blocks.
struct Block {
  size_t run;
  int64_t begin, end;
};

template <class Numbers>
std::vector<Block> blocks_of(std::span<const Run<Numbers>> runs) {
  std::vector<Block> blocks;
  for (size_t r = 0; r < runs.size(); ++r)
    for (int64_t begin = runs[r].begin, end = 0; begin < runs[r].end; begin = end) {
      end = std::min((begin / kStepBlock + 1) * kStepBlock, runs[r].end);
      blocks.push_back({r, begin, end});
    }
  return blocks;
}

/// Calls loop(begin, end, numbers) for all blocks, from all threads.
template <class Numbers, class Loop>
void for_blocks(std::span<const Run<Numbers>> runs, const Loop& loop) {
  const std::vector<Block> blocks = blocks_of(runs);
  at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Block& block = blocks[static_cast<size_t>(b)];
      loop(block.begin, block.end, runs[block.run].numbers);
    }
  });
}

/// The same for a loop that returns sums: those of each run, its blocks added in order.
template <class Numbers, class Loop>
std::vector<SquareSums> sum_blocks(std::span<const Run<Numbers>> runs, const Loop& loop) {
  const std::vector<Block> blocks = blocks_of(runs);
  std::vector<SquareSums> of_block(blocks.size()), sums(runs.size());
  at::parallel_for(0, static_cast<int64_t>(blocks.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Block& block = blocks[static_cast<size_t>(b)];
      of_block[static_cast<size_t>(b)] = loop(block.begin, block.end, runs[block.run].numbers);
    }
  });
  for (size_t b = 0; b < blocks.size(); ++b) {
    sums[blocks[b].run].weight += of_block[b].weight;
    sums[blocks[b].run].update += of_block[b].update;
  }
  return sums;
}

}  // namespace

void adam_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, std::span<const Run<AdamScalars>> runs) {
  const Backend backend = backend_of({&params, &grads, &exp_avg, &exp_avg_sq}, runs, "adam_runs");
  if (backend == Backend::kReference)
    return reference::adam_runs(params, grads, exp_avg, exp_avg_sq, runs);
  if (backend == Backend::kCuda) return cuda::adam_runs(params, grads, exp_avg, exp_avg_sq, runs);
  float *p = params.data_ptr<float>(), *m = exp_avg.data_ptr<float>();
  float* v = exp_avg_sq.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const AdamScalars& scalars) {
    cpu::table().adam(p, g, m, v, begin, end, scalars);
  });
}

void momentum_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& velocity,
                   std::span<const Run<MomentumScalars>> runs) {
  const Backend backend = backend_of({&params, &grads, &velocity}, runs, "momentum_runs");
  if (backend == Backend::kReference)
    return reference::momentum_runs(params, grads, velocity, runs);
  if (backend == Backend::kCuda) return cuda::momentum_runs(params, grads, velocity, runs);
  float *p = params.data_ptr<float>(), *u = velocity.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const MomentumScalars& scalars) {
    cpu::table().steps.momentum(p, g, u, begin, end, scalars);
  });
}

void adagrad_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum,
                  std::span<const Run<AdagradScalars>> runs) {
  const Backend backend = backend_of({&params, &grads, &sum}, runs, "adagrad_runs");
  if (backend == Backend::kReference) return reference::adagrad_runs(params, grads, sum, runs);
  if (backend == Backend::kCuda) return cuda::adagrad_runs(params, grads, sum, runs);
  float *p = params.data_ptr<float>(), *total = sum.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const AdagradScalars& scalars) {
    cpu::table().steps.adagrad(p, g, total, begin, end, scalars);
  });
}

void ftrl_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum, at::Tensor& linear,
               std::span<const Run<FtrlScalars>> runs) {
  const Backend backend = backend_of({&params, &grads, &sum, &linear}, runs, "ftrl_runs");
  if (backend == Backend::kReference) return reference::ftrl_runs(params, grads, sum, linear, runs);
  if (backend == Backend::kCuda) return cuda::ftrl_runs(params, grads, sum, linear, runs);
  float *p = params.data_ptr<float>(), *total = sum.data_ptr<float>();
  float* z = linear.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const FtrlScalars& scalars) {
    cpu::table().steps.ftrl(p, g, total, z, begin, end, scalars);
  });
}

void rmsprop_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& square_avg,
                  at::Tensor& velocity, std::span<const Run<RmspropScalars>> runs) {
  const Backend backend =
      backend_of({&params, &grads, &square_avg, &velocity}, runs, "rmsprop_runs");
  if (backend == Backend::kReference)
    return reference::rmsprop_runs(params, grads, square_avg, velocity, runs);
  if (backend == Backend::kCuda)
    return cuda::rmsprop_runs(params, grads, square_avg, velocity, runs);
  float *p = params.data_ptr<float>(), *v = square_avg.data_ptr<float>();
  float* u = velocity.data_ptr<float>();
  const float* g = grads.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const RmspropScalars& scalars) {
    cpu::table().steps.rmsprop(p, g, v, u, begin, end, scalars);
  });
}

std::vector<SquareSums> lamb_moments(const at::Tensor& params, const at::Tensor& grads,
                                     at::Tensor& exp_avg, at::Tensor& exp_avg_sq,
                                     std::span<const Run<LambScalars>> runs) {
  const Backend backend =
      backend_of({&params, &grads, &exp_avg, &exp_avg_sq}, runs, "lamb_moments");
  if (backend == Backend::kReference)
    return reference::lamb_moments(params, grads, exp_avg, exp_avg_sq, runs);
  if (backend == Backend::kCuda)
    return cuda::lamb_moments(params, grads, exp_avg, exp_avg_sq, runs);
  const float *p = params.const_data_ptr<float>(), *g = grads.const_data_ptr<float>();
  float *m = exp_avg.data_ptr<float>(), *v = exp_avg_sq.data_ptr<float>();
  return sum_blocks(runs, [&](int64_t begin, int64_t end, const LambScalars& scalars) {
    return cpu::table().steps.lamb_moments(p, g, m, v, begin, end, scalars);
  });
}

void lamb_apply(at::Tensor& params, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                std::span<const Run<LambScalars>> runs) {
  const Backend backend = backend_of({&params, &exp_avg, &exp_avg_sq}, runs, "lamb_apply");
  if (backend == Backend::kReference)
    return reference::lamb_apply(params, exp_avg, exp_avg_sq, runs);
  if (backend == Backend::kCuda) return cuda::lamb_apply(params, exp_avg, exp_avg_sq, runs);
  float* p = params.data_ptr<float>();
  const float *m = exp_avg.const_data_ptr<float>(), *v = exp_avg_sq.const_data_ptr<float>();
  for_blocks(runs, [&](int64_t begin, int64_t end, const LambScalars& scalars) {
    cpu::table().steps.lamb_apply(p, m, v, begin, end, scalars);
  });
}

std::vector<SquareSums> squares_of_runs(const at::Tensor& params, const at::Tensor& grads,
                                        std::span<const Run<NormScalars>> runs) {
  const Backend backend = backend_of({&params, &grads}, runs, "squares_of_runs");
  if (backend == Backend::kReference) return reference::squares_of_runs(params, grads, runs);
  if (backend == Backend::kCuda) return cuda::squares_of_runs(params, grads, runs);
  const float *p = params.const_data_ptr<float>(), *g = grads.const_data_ptr<float>();
  return sum_blocks(runs, [&](int64_t begin, int64_t end, const NormScalars& scalars) {
    return cpu::table().steps.squares(p, g, begin, end, scalars);
  });
}

}  // namespace stretto::kernels
