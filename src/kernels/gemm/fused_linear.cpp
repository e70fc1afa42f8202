#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/linear_inputs.h"
#include "kernels/gemm/packed_weights.h"

namespace stretto::kernels::fused {
namespace {

using gemm::product;

struct LinearNode : torch::autograd::Function<LinearNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias) {
    const at::Tensor rows = x.contiguous(), table = weight.contiguous();
    const Compute compute = ComputeScope::current();
    ctx->saved_data["biased"] = bias.has_value();
    keep(ctx, compute);
    ctx->save_for_backward({rows, table});
    return product({rows}, {table, true}, bias ? bias->contiguous() : at::Tensor(), compute);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    const Compute compute = kept_compute(ctx);
    at::Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0)) dx = product({dy}, {weight}, {}, compute);
    if (ctx->needs_input_grad(1)) dweight = product({dy, true}, {x}, {}, compute);
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy);
    return {dx, dweight, dbias};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!at::GradMode::is_enabled()) {
    tell_linear_inputs(x, weight);
    const at::Tensor shift = bias.defined() ? bias.contiguous() : bias;
    const Compute compute = ComputeScope::current();
    if (auto* packed = PackedWeightsScope::current(); packed != nullptr && weight.is_contiguous()) {
      at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
      gemm::multiply({x.contiguous()}, packed->of(weight, compute), shift, false, out);
      return out;
    }
    return product({x.contiguous()}, {weight.contiguous(), true}, shift, compute);
  }
  return LinearNode::apply(x, weight,
                           bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

}  // namespace stretto::kernels::fused
