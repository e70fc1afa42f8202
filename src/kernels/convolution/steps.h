#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "kernels/gemm/gemm.h"

/// Causal convolutions (convolution.h, stride 1) one step at a time, for decoding: no gradient. A
/// step gives what the whole sequence would give at its last row, but for rounding where products
/// of whole sequences are taken another way (filtering.h).
///
///     PackedConvolution packed(weight, bias, kernel);  // once
///     RowCache cache(kernel);                          // for each layer and search
///     y = time_convolution_step(packed, x, cache);     // x [L, C] for L lanes -> [L, O]
///     cache.reorder(parents);                          // lane i goes on from lane parents[i]
namespace stretto::kernels {

/// The rows that the taps of the next steps see: the last (kernel - 1) * dilation of each lane.
class RowCache {
 public:
  explicit RowCache(int64_t kernel, int64_t dilation = 1);

  /// Takes the next row of each lane, x [L, C]; the first call says how many lanes there are.
  void push(const at::Tensor& x);

  /// From now on lane i continues what lane parents[i] was; int64 [L'], on the device of the rows.
  void reorder(const at::Tensor& parents);

  int64_t kernel() const { return kernel_; }
  int64_t lanes() const { return rows_.defined() ? rows_.size(1) : 0; }
  int64_t num_pushed() const { return pushed_; }

  /// All rows that are kept, [span * L, C], and which of them the taps of each lane see since the
  /// last push: int32 [L, K] on the CPU, -1 before the beginning.
  at::Tensor rows() const { return rows_.flatten(0, 1); }
  at::Tensor lines() const;

  /// The windows themselves, [L, K, C].
  at::Tensor windows() const;

 private:
  int64_t kernel_, dilation_, pushed_ = 0;
  at::Tensor rows_;  // [span, L, C], step t in place t % span
};

/// The weight of a time_convolution, rounded as the ComputeScope of its making says and laid out
/// once for all steps; within a PackedWeightsScope once for all searches, like any weight there.
class PackedConvolution {
 public:
  PackedConvolution(const at::Tensor& weight, const at::Tensor& bias, int64_t kernel);

  int64_t kernel() const { return kernel_; }
  int64_t inputs() const { return weight_.size(1) / kernel_; }
  int64_t outputs() const { return weight_.size(0); }
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }
  /// Null where no fast product exists (fp64, GPUs).
  const gemm::Packed* packed() const { return packed_.get(); }

 private:
  at::Tensor weight_, bias_;
  int64_t kernel_;
  std::shared_ptr<const gemm::Packed> packed_;
};

at::Tensor time_convolution_step(const PackedConvolution& convolution, const at::Tensor& x,
                                 RowCache& cache);

/// weight [H, K], raw as for light_convolution.
at::Tensor light_convolution_step(const at::Tensor& weight, const at::Tensor& x, RowCache& cache);

/// weights [L, H * K], raw as for dynamic_convolution.
at::Tensor dynamic_convolution_step(const at::Tensor& weights, int64_t num_heads,
                                    const at::Tensor& x, RowCache& cache);

}  // namespace stretto::kernels
