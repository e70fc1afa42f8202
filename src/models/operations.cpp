#include "models/operations.h"

#include "nn/linear.h"
#include "nn/relative_keys.h"
#include "nn/time_convolution.h"

namespace stretto::models {
namespace {

double own_operations(const torch::nn::Module& module) {
  if (const auto* linear = module.as<nn::LinearImpl>()) {
    const int64_t learned = linear->lora ? linear->lora->a.numel() + linear->lora->b.numel() : 0;
    return 2 * static_cast<double>(linear->weight.numel() + learned);
  }
  if (const auto* convolution = module.as<nn::TimeConvolutionImpl>()) {
    return 2 * static_cast<double>(convolution->weight.numel());
  }
  if (const auto* keys = module.as<nn::RelativeKeysImpl>()) return keys->operations();
  return 0;
}

}  // namespace

double weight_operations(const torch::nn::Module& module) {
  double sum = own_operations(module);
  for (const auto& child : module.children()) sum += weight_operations(*child);
  return sum;
}

}  // namespace stretto::models
