#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/transformer_layers.h"

namespace stretto::models {

/// One part of a layer, and the dropout of its output.
struct ParallelPart {
  std::function<at::Tensor(const at::Tensor& x)> forward;  ///< [N, D] -> [N, D]
  kernels::Dropout dropout;
};

/// Residual connection around all parts of a layer at once, behind one norm:
///
///     x + sum over parts of dropout(part(norm(x)))
///
/// An encoder layer is x + self(n) + ffn(n) with n = norm(x): the parallel form of GPT-J and PaLM
/// (Chowdhery et al. 2022, arXiv:2204.02311, section 2). Those have no encoder; a decoder layer
/// that attends to one is x + self(n) + cross(n) + ffn(n), the same form with a third part. Parts
/// are added in this order. Dropout is that of the parts in a row: the same places, the same sites.
///
/// Where `model.adapter` names `self`, `cross` or `ffn` below the connection, the part's output
/// goes through an adapter (nn/adapter.h) that reads it alone, `ffn.adapter`.
class ParallelResidualImpl : public torch::nn::Module {
 public:
  /// @param parts  names of the parts, in the order of forward()
  ParallelResidualImpl(const nn::Init& init, const TransformerPart& options, int64_t d_model,
                       const std::vector<std::string>& parts);

  at::Tensor forward(const at::Tensor& x, const std::vector<ParallelPart>& parts) const;

  nn::Norm norm{nullptr};
  std::vector<nn::Adapter> adapters;  ///< of each part; null without one
};
TORCH_MODULE(ParallelResidual);

}  // namespace stretto::models
