#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <span>

#include "nn/init.h"

namespace stretto::nn {

/// Replaces each number by its sum over all processes; each of them calls it in the same order.
using SumOverRanks = std::function<void(std::span<double>)>;

struct BatchNormOptions {
  /// libtorch's convention: running = (1 - momentum) * running + momentum * batch. A "momentum of
  /// 0.9" in the papers is 0.1 here.
  double momentum = 0.1;
  double epsilon = 1e-5;
  /// gamma starts at 0 and not at 1: for the last norm of a residual block, which is then the
  /// identity at first (Goyal et al. 2017, arXiv:1706.02677, section 5.1).
  bool zero_gamma = false;
};

/// Batch normalisation (Ioffe and Szegedy 2015, arXiv:1502.03167) of each channel over all else:
///
///     y = (x - mean) / sqrt(var + epsilon) * gamma + beta
///
/// N rows, C channels, T places in time or space: x [N, C] or [N, C, T…] of any floating dtype -> y
/// like x. `weight` (gamma) and `bias` (beta) are [C] vectors, so weight decay leaves them alone.
/// In training mode mean and biased variance are the batch's, taken in fp32 at least, and the
/// running ones (the variance unbiased, n / (n - 1)) move towards them; in evaluation mode they are
/// the running ones.
///
/// By default the batch is what this process passed to this call: its micro-batch. That is part of
/// what is minimised: another micro-batch size is another problem, more processes are not (Goyal,
/// section 2.3). Running statistics then differ among processes; a checkpoint has those of one.
///
/// Synchronised, the batch is that of all processes: forward sums 2 C + 1 numbers (sums, sums of
/// squares, count), backward 2 C (the gradients of mean and variance); running statistics are equal
/// on all. Every process must make the same calls in the same order, with no rows if it has none.
///
/// forward throws Error(kBadData) in training mode when a channel has a single value (it has no
/// variance) and c10::Error for a shape that does not fit.
class BatchNormImpl : public torch::nn::Module {
 public:
  BatchNormImpl(const Init& init, int64_t channels, const BatchNormOptions& options = {});
  at::Tensor forward(const at::Tensor& x);

  /// An empty function ends it.
  void synchronise(SumOverRanks sum) { sum_over_ranks_ = std::move(sum); }

  at::Tensor weight, bias;               ///< [C]
  at::Tensor running_mean, running_var;  ///< [C], buffers: no gradient; start at 0 and 1

 private:
  at::Tensor normalise(const at::Tensor& x, bool training);
  at::Tensor normalise_over_ranks(const at::Tensor& x);

  BatchNormOptions options_;
  SumOverRanks sum_over_ranks_;
};
TORCH_MODULE(BatchNorm);

/// Synchronises every BatchNorm of a model, which itself knows nothing of processes. @return how
/// many
int64_t synchronise_batch_norms(torch::nn::Module& model, const SumOverRanks& sum);

}  // namespace stretto::nn
