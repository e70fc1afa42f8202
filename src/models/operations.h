#pragma once

#include <torch/nn/module.h>

/// What a forward pass of a model costs, in multiplications and additions of products: of rows with
/// weights, of queries with keys and of attention's weights with values, of windows with filters. A
/// multiplication and the addition behind it are two. Not counted is what grows more slowly than
/// products do: lookups, norms, gates, softmax, dropout, sums of residual connections.
namespace stretto::models {

/// The operations of one row with all weights of `module` and of the modules below it: the sum of
/// what each nn::Counted of them says. A head's matrix is no such module (Head::operations).
double weight_operations(const torch::nn::Module& module);

/// The operations of one row that attends to `length` rows: a product with each key, and a sum of
/// their values.
inline double attention_operations(double key_width, double value_width, double length) {
  return 2 * (key_width + value_width) * length;
}

}  // namespace stretto::models
