#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "nn/init.h"

namespace stretto::nn {

struct LinearOptions {
  int64_t parts = 1;  ///< equal matrices merged into one; each is initialised as if it were alone
  double gain = 1.0;  ///< of the Xavier-uniform weight
  bool bias = true;   ///< starts at zero
  /// Rows of unequal matrices merged into one, instead of `parts`; they add up to `out`.
  std::vector<int64_t> part_rows = {};
};

/// y = x W^T + b; x [N, in], weight [out, in], bias [out] -> [N, out].
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(const Init& init, int64_t in, int64_t out, const LinearOptions& options = {});
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight;
  at::Tensor bias;  ///< undefined without bias
};
TORCH_MODULE(Linear);

}  // namespace stretto::nn
