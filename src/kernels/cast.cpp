#include "kernels/cast.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace stretto::kernels::cast {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// linear in TF32: backward must allow it again.
struct Tf32Node : torch::autograd::Function<Tf32Node> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const Tf32Guard guard(true);
    ctx->saved_data["biased"] = bias.has_value();
    ctx->save_for_backward({x, weight});
    return at::linear(x, weight, bias);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Tf32Guard guard(true);
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &dy = grads[0];
    const bool biased = ctx->saved_data["biased"].toBool();
    return {ctx->needs_input_grad(0) ? at::mm(dy, weight) : at::Tensor(),
            ctx->needs_input_grad(1) ? at::mm(dy.t(), x) : at::Tensor(),
            biased && ctx->needs_input_grad(2) ? dy.sum(0) : at::Tensor()};
  }
};

}  // namespace

Tf32Guard::Tf32Guard(bool wanted)
    : before_(at::globalContext().allowTF32CuBLAS()), changed_(wanted && !before_) {
  if (changed_) at::globalContext().setAllowTF32CuBLAS(true);
}

Tf32Guard::~Tf32Guard() {
  if (changed_) at::globalContext().setAllowTF32CuBLAS(before_);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Compute compute) {
  const auto shift = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
  if (!is_half(compute)) return Tf32Node::apply(x, weight, shift);
  const at::ScalarType type = half_type(compute);
  const auto narrow = shift ? std::optional<at::Tensor>(shift->to(type)) : std::nullopt;
  return at::linear(x.to(type), weight.to(type), narrow).to(at::kFloat);
}

}  // namespace stretto::kernels::cast
