#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "kernels/gemm.h"

namespace stretto::kernels {

/// Weights laid out for our own product, each once: a decoding step multiplies few rows, and laying
/// the weights out anew costs a third of such a product.
///
/// The weights must stay as they are for as long as this lives; it keeps them alive, and its copies
/// take as much memory as they do. Threads may share it.
class PackedWeights {
 public:
  /// weight [N, D] as the right factor [D, N] of products in this arithmetic.
  const gemm::Packed& of(const at::Tensor& weight, Compute compute);

 private:
  struct Entry {
    at::Tensor weight;
    std::unique_ptr<gemm::Packed> packed;
  };
  using Key = std::tuple<const void*, int64_t, int64_t, Compute>;

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

/// For as long as it lives, `linear` without gradient on a CPU of this thread takes its weights
/// from `weights` where our own product is the faster one for many rows (gemm::is_taken): also for
/// few, since what libtorch gained there was not laying them out. So a row's result depends neither
/// on the rows beside it nor on the number of threads. Nests.
class PackedWeightsScope {
 public:
  explicit PackedWeightsScope(PackedWeights& weights);
  ~PackedWeightsScope();
  PackedWeightsScope(const PackedWeightsScope&) = delete;
  PackedWeightsScope& operator=(const PackedWeightsScope&) = delete;

  /// Null outside of scopes, and where libtorch's product is taken.
  static PackedWeights* current();

 private:
  PackedWeights* before_;
};

}  // namespace stretto::kernels
