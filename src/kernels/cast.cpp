#include "kernels/cast.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"

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

/// Sums of rows' columns in fp32: [N, D] -> [D].
at::Tensor column_sums(const at::Tensor& rows) {
  const auto kernel = on_gpu(cuda::table().column_sums, rows);
  return kernel != nullptr ? kernel(rows) : at::sum(rows, 0, /*keepdim=*/false, at::kFloat);
}

/// linear in a half type. Operands are cast here, so that backward reads them as forward did, and
/// gradients of rows come back in the type that the rows had.
struct HalfNode : torch::autograd::Function<HalfNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, at::ScalarType type,
                            Storage storage) {
    const at::Tensor rows = x.to(type), matrix = weight.to(type);
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["wide"] = x.scalar_type() == at::kFloat;
    ctx->save_for_backward({rows, matrix});
    const at::Tensor out =
        at::linear(rows, matrix, bias ? std::optional(bias->to(type)) : std::nullopt);
    return storage == Storage::kFp32 ? out.to(at::kFloat) : out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &rows = saved[0], &matrix = saved[1];
    const at::Tensor dy = grads[0].to(rows.scalar_type());
    variable_list slopes(5);
    if (ctx->needs_input_grad(0)) {
      const at::Tensor dx = at::mm(dy, matrix);
      slopes[0] = ctx->saved_data["wide"].toBool() ? dx.to(at::kFloat) : dx;
    }
    if (ctx->needs_input_grad(1)) slopes[1] = at::mm(dy.t(), rows).to(at::kFloat);
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2)) slopes[2] = column_sums(dy);
    return slopes;
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
                  Compute compute, Storage storage) {
  const auto shift = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
  if (!is_half(compute)) return Tf32Node::apply(x, weight, shift);
  return HalfNode::apply(x, weight, shift, half_type(compute), storage);
}

}  // namespace stretto::kernels::cast
