#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "nn/compressed.h"
#include "nn/counted.h"
#include "nn/init.h"
#include "nn/lora.h"

namespace stretto::nn {

struct LinearOptions {
  int64_t parts = 1;  ///< equal matrices merged into one; each is initialised as if it were alone
  double gain = 1.0;  ///< of the Xavier-uniform weight
  bool bias = true;   ///< starts at zero
  /// Rows of unequal matrices merged into one, instead of `parts`; they add up to `out`.
  std::vector<int64_t> part_rows = {};
};

/// y = x W^T + b; x [N, in], weight [out, in], bias [out] -> [N, out].
///
/// Where `model.lora` names this map, it also has the parameters `lora_a` and `lora_b` (nn/lora.h),
/// and W above stands for W + scale B A. Without gradients that sum is computed first, so that a
/// model has the bits of the one that it is merged into.
///
/// W may be codes of few bits (nn/compressed.h), except beside LoRA.
class LinearImpl : public torch::nn::Module, public Counted, public TakesCodes {
 public:
  LinearImpl(const Init& init, int64_t in, int64_t out, const LinearOptions& options = {});
  /// @param storage  kRounded for what goes to an operator that takes it
  at::Tensor forward(const at::Tensor& x, kernels::Storage storage = kernels::Storage::kFp32) const;

  /// x W^T alone, for a bias that joins what follows.
  at::Tensor product(const at::Tensor& x, kernels::Storage storage = kernels::Storage::kFp32) const;
  /// Rows [from, from + count) of y, for callers that give parts of a merged map other rows x.
  at::Tensor rows(const at::Tensor& x, int64_t from, int64_t count) const;
  /// W as kernels::linear and recurrent layers take it: numbers, or a stand-in for codes.
  at::Tensor operand() const;
  /// W as numbers, for operators that take the matrix itself.
  at::Tensor matrix() const;

  /// Those of LoRA's two matrices are made beside those of `weight`.
  double operations() const override;

  at::Tensor weight;
  at::Tensor bias;                 ///< undefined without bias
  std::vector<int64_t> part_rows;  ///< of W, of each map that it merges: one entry or more
  std::unique_ptr<Lora> lora;      ///< null where the map learns its own weight
};
TORCH_MODULE(Linear);

}  // namespace stretto::nn
