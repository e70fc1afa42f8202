#include "nn/merged_matrices.h"

#include "nn/linear.h"

namespace stretto::nn {

std::vector<MergedMatrix> merged_matrices(const torch::nn::Module& model) {
  std::vector<MergedMatrix> merged;
  for (const auto& child : model.modules(/*include_self=*/false)) {
    const auto* linear = child->as<LinearImpl>();
    if (linear == nullptr || linear->part_rows.size() < 2) continue;
    merged.push_back({linear->weight, linear->part_rows});
    if (!linear->lora) continue;
    const int64_t rank = linear->lora->b.size(1);
    merged.push_back({linear->lora->a, std::vector<int64_t>(linear->part_rows.size(), rank)});
    merged.push_back({linear->lora->b, linear->part_rows});
  }
  return merged;
}

}  // namespace stretto::nn
