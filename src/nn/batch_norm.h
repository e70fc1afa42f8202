#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <span>
#include <vector>

#include "kernels/norm/plane_norm.h"
#include "nn/norm.h"

namespace stretto::nn {

/// Replaces each number by its sum over all processes; each of them calls it in the same order.
using SumOverRanks = std::function<void(std::span<double>)>;

struct BatchNormOptions {
  /// libtorch's convention: running = (1 - momentum) * running + momentum * batch. A "momentum of
  /// 0.9" in the papers is 0.1 here.
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool zero_gamma = false;   ///< see NormImpl
  bool learns_gamma = true;  ///< false: gamma stays 1, a frozen parameter
  /// A batch with a single value in each channel, which has no variance, is normalised by the
  /// running statistics, and moves nothing; false: it is an error.
  bool single_by_running = false;
};

/// What follows a batch norm as part of the same operator: end(norm(x) + residual).
struct NormEnd {
  kernels::PlaneEnd end = kernels::PlaneEnd::kNone;
  at::Tensor residual = {};  ///< like x; undefined: nothing is added
};

/// What a batch was normalised by; [C], on the layer's device, without gradient.
struct BatchMoments {
  at::Tensor mean;
  at::Tensor var;  ///< unbiased, n / (n - 1) times the one that x was divided by the root of
};

/// Batch normalisation (Ioffe and Szegedy 2015, arXiv:1502.03167) of each channel over all else:
///
///     y = (x - mean) / sqrt(var + epsilon) * gamma + beta
///
/// N rows, C channels, T places in time or space: x [N, C] or [N, C, T…] of any floating dtype -> y
/// like x. `weight` (gamma) and `bias` (beta) are [C] vectors, so weight decay leaves them alone.
/// In training mode mean and biased variance are the batch's, taken in fp32 at least, and the
/// running ones (the variance unbiased) move towards them; in evaluation mode they are the running
/// ones. With `hand_moments_to` the caller moves them: an update that is thrown away must not, and
/// one of several processes has to move them alike on all (`parallel/running_statistics`).
///
/// By default the batch is what this process passed to this call: its micro-batch. That is part of
/// what is minimised: another micro-batch size is another problem, more processes are not (Goyal et
/// al. 2017, section 2.3).
///
/// Synchronised, the batch is that of all processes: forward sums 2 C + 1 numbers (sums, sums of
/// squares, count), backward 2 C (the gradients of mean and variance). Every process must make the
/// same calls in the same order, with no rows if it has none.
///
/// forward throws Error(kBadData) in training mode when a channel has a single value (it has no
/// variance; BatchNormOptions::single_by_running) and c10::Error for a shape that does not fit.
class BatchNormImpl : public NormImpl {
 public:
  using TakeMoments = std::function<void(const BatchMoments&)>;

  BatchNormImpl(const Init& init, int64_t channels, const BatchNormOptions& options = {});
  at::Tensor forward(const at::Tensor& x) const override { return forward_to({}, x); }
  /// The same with what follows: for planes [N, C, H, W], a pass over them less.
  at::Tensor forward_to(const NormEnd& end, const at::Tensor& x) const;

  /// An empty function ends it.
  void synchronise(SumOverRanks sum) { sum_over_ranks_ = std::move(sum); }
  /// forward in training mode calls `take` and leaves the running statistics. An empty function
  /// ends it.
  void hand_moments_to(TakeMoments take) { take_moments_ = std::move(take); }

  /// From now on the running statistics stay, and x is normalised by them in training mode too.
  void freeze() { frozen_ = true; }
  bool is_frozen() const { return frozen_; }

  double momentum() const { return options_.momentum; }

  /// Whether forward normalises by the running statistics.
  bool goes_by_running() const { return frozen_ || !is_training(); }
  /// What forward is then: y = x scale + shift; each [C], in the statistics' dtype.
  struct Map {
    at::Tensor scale, shift;
  };
  Map running_map() const;

  at::Tensor running_mean, running_var;  ///< [C], buffers: no gradient; start at 0 and 1

 private:
  at::Tensor normalise_by_running(const at::Tensor& x) const;
  at::Tensor normalise_by_batch(const at::Tensor& x) const;
  at::Tensor normalise_planes(const at::Tensor& x, const NormEnd& end) const;
  at::Tensor normalise_over_ranks(const at::Tensor& x) const;
  bool has_variance(double values) const;
  void keep(const BatchMoments& moments) const;

  BatchNormOptions options_;
  bool frozen_ = false;
  SumOverRanks sum_over_ranks_;
  TakeMoments take_moments_;
};
TORCH_MODULE(BatchNorm);

/// Every BatchNorm of a model, itself included, in the order of registration.
std::vector<BatchNormImpl*> batch_norms(torch::nn::Module& model);

/// What a process without rows does where the others run the model: calls every batch norm in the
/// order of registration, with no rows. @return 0, whose backward makes their calls of backward;
/// undefined for a model without batch norms
at::Tensor pass_without_rows(torch::nn::Module& model);

}  // namespace stretto::nn
