// From tensors and runs to the launches of cuda_steps.cu.
#include "kernels/optimizer/cuda_steps.h"

#include <algorithm>

#include "kernels/cuda/bridge.h"
#include "kernels/optimizer/cuda_step_launch.h"

namespace stretto::kernels::cuda {
namespace {

template <class Numbers>
struct Cut {
  std::vector<Run<Numbers>> blocks;
  std::vector<size_t> run_of;  ///< of each block
};

template <class Numbers>
Cut<Numbers> cut(std::span<const Run<Numbers>> runs) {
  Cut<Numbers> result;
  for (size_t r = 0; r < runs.size(); ++r)
    for (int64_t begin = runs[r].begin, end = 0; begin < runs[r].end; begin = end) {
      end = std::min((begin / kDeviceStepBlock + 1) * kDeviceStepBlock, runs[r].end);
      result.blocks.push_back({begin, end, runs[r].numbers});
      result.run_of.push_back(r);
    }
  return result;
}

template <class T>
at::Tensor bytes_like(const at::Tensor& buffer, size_t count) {
  return at::empty({static_cast<int64_t>(count * sizeof(T))}, buffer.options().dtype(at::kByte));
}

/// Calls use(table) with the blocks on the device. The copy from pageable memory has left the host
/// when it returns, so the vector may go.
template <class Numbers, class Use>
void with_table(const at::Tensor& params, const std::vector<Run<Numbers>>& blocks, const Use& use) {
  const at::Tensor memory = bytes_like<Run<Numbers>>(params, blocks.size());
  on_stream(params, [&](cudaStream_t stream) {
    C10_CUDA_CHECK(cudaMemcpyAsync(memory.data_ptr(), blocks.data(),
                                   static_cast<size_t>(memory.nbytes()), cudaMemcpyHostToDevice,
                                   stream));
    use(StepTable<Numbers>{static_cast<const Run<Numbers>*>(memory.const_data_ptr()),
                           static_cast<int64_t>(blocks.size()), stream});
  });
}

/// The same for launches that write a pair of sums for each block: use(table, sums).
template <class Numbers, class Use>
std::vector<SquareSums> sum_with_table(const at::Tensor& params, std::span<const Run<Numbers>> runs,
                                       const Use& use) {
  const Cut<Numbers> cuts = cut(runs);
  const at::Tensor sums = bytes_like<SquareSums>(params, cuts.blocks.size());
  with_table(params, cuts.blocks, [&](const StepTable<Numbers>& table) {
    use(table, static_cast<SquareSums*>(sums.data_ptr()));
  });
  const at::Tensor host = sums.cpu();
  const auto* of_block = static_cast<const SquareSums*>(host.const_data_ptr());
  std::vector<SquareSums> totals(runs.size());
  for (size_t b = 0; b < cuts.blocks.size(); ++b) {
    totals[cuts.run_of[b]].weight += of_block[b].weight;
    totals[cuts.run_of[b]].update += of_block[b].update;
  }
  return totals;
}

}  // namespace

bool takes_steps(const at::Tensor& flat) {
  return flat.is_cuda() && flat.scalar_type() == at::kFloat;
}

void adam_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& exp_avg,
               at::Tensor& exp_avg_sq, std::span<const Run<AdamScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<AdamScalars>& table) {
    step_adam(table, params.data_ptr<float>(), grads.const_data_ptr<float>(),
              exp_avg.data_ptr<float>(), exp_avg_sq.data_ptr<float>());
  });
}

void momentum_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& velocity,
                   std::span<const Run<MomentumScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<MomentumScalars>& table) {
    step_momentum(table, params.data_ptr<float>(), grads.const_data_ptr<float>(),
                  velocity.data_ptr<float>());
  });
}

void adagrad_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum,
                  std::span<const Run<AdagradScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<AdagradScalars>& table) {
    step_adagrad(table, params.data_ptr<float>(), grads.const_data_ptr<float>(),
                 sum.data_ptr<float>());
  });
}

void ftrl_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& sum, at::Tensor& linear,
               std::span<const Run<FtrlScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<FtrlScalars>& table) {
    step_ftrl(table, params.data_ptr<float>(), grads.const_data_ptr<float>(), sum.data_ptr<float>(),
              linear.data_ptr<float>());
  });
}

void rmsprop_runs(at::Tensor& params, const at::Tensor& grads, at::Tensor& square_avg,
                  at::Tensor& velocity, std::span<const Run<RmspropScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<RmspropScalars>& table) {
    step_rmsprop(table, params.data_ptr<float>(), grads.const_data_ptr<float>(),
                 square_avg.data_ptr<float>(), velocity.data_ptr<float>());
  });
}

std::vector<SquareSums> lamb_moments(const at::Tensor& params, const at::Tensor& grads,
                                     at::Tensor& exp_avg, at::Tensor& exp_avg_sq,
                                     std::span<const Run<LambScalars>> runs) {
  return sum_with_table(params, runs, [&](const StepTable<LambScalars>& table, SquareSums* sums) {
    sum_lamb(table, params.const_data_ptr<float>(), grads.const_data_ptr<float>(),
             exp_avg.data_ptr<float>(), exp_avg_sq.data_ptr<float>(), sums);
  });
}

void lamb_apply(at::Tensor& params, const at::Tensor& exp_avg, const at::Tensor& exp_avg_sq,
                std::span<const Run<LambScalars>> runs) {
  with_table(params, cut(runs).blocks, [&](const StepTable<LambScalars>& table) {
    step_lamb(table, params.data_ptr<float>(), exp_avg.const_data_ptr<float>(),
              exp_avg_sq.const_data_ptr<float>());
  });
}

std::vector<SquareSums> squares_of_runs(const at::Tensor& params, const at::Tensor& grads,
                                        std::span<const Run<NormScalars>> runs) {
  return sum_with_table(params, runs, [&](const StepTable<NormScalars>& table, SquareSums* sums) {
    sum_squares(table, params.const_data_ptr<float>(), grads.const_data_ptr<float>(), sums);
  });
}

}  // namespace stretto::kernels::cuda
