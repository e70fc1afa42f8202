#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm.h"

namespace stretto::kernels::fused {
namespace {

using gemm::Operand;
using gemm::Packed;

/// a b for 2-D tensors, by whichever library the rule chooses.
at::Tensor product(const Operand& a, const Operand& b, const at::Tensor& bias = {}) {
  const auto plain = [](const Operand& x) { return x.transposed ? x.matrix.t() : x.matrix; };
  if (!gemm::is_better(a.rows(), a.columns(), b.columns()))
    return bias.defined() ? at::addmm(bias, plain(a), plain(b)) : at::mm(plain(a), plain(b));
  at::Tensor out = at::empty({a.rows(), b.columns()}, a.matrix.options());
  gemm::multiply(a, Packed(b), bias, false, out);
  return out;
}

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return product({x}, {weight, true}, bias);
}

struct LinearNode : torch::autograd::Function<LinearNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::Tensor rows = x.contiguous(), table = weight.contiguous();
    ctx->saved_data["biased"] = bias.has_value();
    ctx->save_for_backward({rows, table});
    return project(rows, table, bias ? bias->contiguous() : at::Tensor());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    at::Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0)) dx = product({dy}, {weight});
    if (ctx->needs_input_grad(1)) dweight = product({dy, true}, {x});
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy);
    return {dx, dweight, dbias};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!at::GradMode::is_enabled())
    return project(x.contiguous(), weight.contiguous(), bias.defined() ? bias.contiguous() : bias);
  return LinearNode::apply(x, weight,
                           bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

}  // namespace stretto::kernels::fused
