#include "nn/relative_keys.h"

#include <cmath>

#include "nn/watch.h"

namespace stretto::nn {

RelativeKeysImpl::RelativeKeysImpl(const Init& init, const RelativeKeysOptions& options)
    : options_(options) {
  TORCH_CHECK(options_.max_distance >= 1, "[relative_keys] max_distance must be at least 1, got ",
              options_.max_distance, "; it is set by model.max_distance");
  const int64_t behind = options_.causal ? 0 : options_.max_distance;
  weight = register_parameter(
      "weight",
      init.xavier_uniform("weight", options_.max_distance + 1 + behind, options_.head_width));
}

kernels::DistanceBias RelativeKeysImpl::forward(const at::Tensor& queries) const {
  const double scale = 1.0 / std::sqrt(static_cast<double>(options_.head_width));
  // Scaled are the queries, whose rows are copied anyway, and not the table: products in decoding
  // keep a layout of each weight that they see.
  const at::Tensor rows = (queries * scale).reshape({-1, options_.head_width});
  const at::Tensor products = watch(*this, kernels::linear(rows, weight));
  return {.table = products.view({queries.size(0), options_.num_heads, weight.size(0)}),
          .zero = options_.max_distance};
}

double RelativeKeysImpl::operations() const {
  return 2.0 * static_cast<double>(options_.num_heads * weight.numel());
}

}  // namespace stretto::nn
