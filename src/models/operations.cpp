#include "models/operations.h"

#include "nn/counted.h"

namespace stretto::models {

double weight_operations(const torch::nn::Module& module) {
  const auto* counted = dynamic_cast<const nn::Counted*>(&module);
  double sum = counted != nullptr ? counted->operations() : 0;
  for (const auto& child : module.children()) sum += weight_operations(*child);
  return sum;
}

}  // namespace stretto::models
