#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "kernels/gemm/gemm.h"

namespace stretto::kernels {

/// Weights laid out for our own product, each once: a decoding step multiplies few rows, and laying
/// the weights out anew costs a third of such a product.
///
/// The weights must stay as they are for as long as this lives; it keeps them alive, and its copies
/// take as much memory as they do. Threads may share it.
class PackedWeights {
 public:
  /// weight [N, D] as the right factor [D, N] of products in this arithmetic.
  const gemm::Packed& of(const at::Tensor& weight, Compute compute) {
    return *shared(weight, compute);
  }
  std::shared_ptr<const gemm::Packed> shared(const at::Tensor& weight, Compute compute);

  /// What `make` makes of `weight` (a normalised one, say), made once. A product with it is then
  /// laid out once too; one that is made anew for each product would be kept each time.
  at::Tensor made_of(const at::Tensor& weight, const std::function<at::Tensor()>& make);

 private:
  struct Entry {
    at::Tensor weight;
    std::shared_ptr<const gemm::Packed> packed;
  };
  using Key = std::tuple<const void*, int64_t, int64_t, Compute>;

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  /// By the address of what it was made of, which is kept too: no other tensor can come to lie
  /// there.
  std::map<const void*, std::pair<at::Tensor, at::Tensor>> made_;
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

  /// Whether our own product is taken in scopes, so that rows are independent: a rule on the
  /// processor.
  static bool is_used();
  /// Null outside of scopes, and where libtorch's product is taken.
  static PackedWeights* current();

 private:
  PackedWeights* before_;
};

}  // namespace stretto::kernels
