#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace stretto::nn {

/// A parameter that merges the matrices of several maps, one below the other.
struct MergedMatrix {
  at::Tensor matrix;
  std::vector<int64_t> rows;  ///< of each; they add up to those of the matrix
};

/// Those of a model's linear layers: of queries, keys and values, of gates. The matrices that LoRA
/// has beside such a layer are merged too.
std::vector<MergedMatrix> merged_matrices(const torch::nn::Module& model);

}  // namespace stretto::nn
