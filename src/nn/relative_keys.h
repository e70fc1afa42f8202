#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "kernels/kernels.h"
#include "nn/counted.h"
#include "nn/init.h"

namespace stretto::nn {

struct RelativeKeysOptions {
  int64_t num_heads = 8;      ///< of queries
  int64_t head_width = 64;    ///< W
  int64_t max_distance = 16;  ///< k, at least 1
  bool causal = false;        ///< no query sees a key behind it
};

/// Relative positions of Shaw et al. 2018 (arXiv:1803.02155, equations 4 and 5): a learned vector
/// for each distance between a query and a key, clipped to [-k, k], that is added to the key.
///
///     score[h, i, j] = q[h, i] . (k[h, j] + weight[clip(j - i)]) / sqrt(W)
///
/// `weight` is [2k + 1, W], Xavier-uniform; all heads of a layer share it (section 3.3), and each
/// layer has its own. A causal one has rows [-k, 0] alone, [k + 1, W]: no pair would read the
/// others. The paper's second table, which is added to values, is left out: its Table 3 finds no
/// loss without it.
///
/// The product of a query with all vectors is made once for each query, [N, H, distances], so that
/// there is no vector for each pair.
class RelativeKeysImpl : public torch::nn::Module, public Counted {
 public:
  RelativeKeysImpl(const Init& init, const RelativeKeysOptions& options);

  /// queries [N, H W], not scaled -> what distances add to their scores [N, H, distances].
  kernels::DistanceBias forward(const at::Tensor& queries) const;

  /// For one query row: each head meets all vectors.
  double operations() const override;

  at::Tensor weight;

 private:
  RelativeKeysOptions options_;
};
TORCH_MODULE(RelativeKeys);

}  // namespace stretto::nn
