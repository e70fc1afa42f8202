#include "models/layer_drop.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "base/random.h"
#include "models/parts.h"

namespace stretto::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Hands x on. An undefined gradient is zero to autograd: each parameter's accumulation runs with
/// its hooks, and adds nothing; what made the memory goes backward over zeros.
struct LeftOutNode : torch::autograd::Function<LeftOutNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, at::TensorList unused) {
    ctx->saved_data["unused"] = static_cast<int64_t>(unused.size());
    return x;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list all(1 + static_cast<size_t>(ctx->saved_data["unused"].toInt()));
    all.front() = grads.front();
    return all;
  }
};

}  // namespace

bool is_left_out(double p, const ForwardContext& context, uint64_t first_site, size_t layer) {
  if (!context.training || p <= 0) return false;
  const uint64_t key = mix64(context.dropout_key, first_site + kLayerDropSites + layer);
  return static_cast<double>(Philox::at(key, 0, 0)[0]) < p * 0x1p32;
}

at::Tensor without_layer(const at::Tensor& x, const torch::nn::Module& layer,
                         const at::Tensor& memory) {
  if (!at::GradMode::is_enabled()) return x;
  std::vector<at::Tensor> unused = layer.parameters();
  if (memory.defined()) unused.push_back(memory);
  return LeftOutNode::apply(x, at::TensorList(unused));
}

}  // namespace stretto::models
