#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/linear_inputs.h"
#include "kernels/loss/forward_slopes.h"
#include "kernels/loss/fused_projection.h"
#include "kernels/loss/smoothing.h"

namespace stretto::kernels::fused {
namespace {

/// The loss of each row and, in place of the logits, its gradient.
std::vector<cpu::LossSums> rows_of_loss(at::Tensor& logits, const at::Tensor& targets,
                                        const SmoothingWeights& weights, double softcap,
                                        bool gradient) {
  const int64_t rows = logits.size(0), classes = logits.size(1);
  std::vector<cpu::LossSums> sums(static_cast<size_t>(rows));
  float* from = logits.data_ptr<float>();
  const int64_t* target = targets.const_data_ptr<int64_t>();
  const auto each = static_cast<float>(weights.each), extra = static_cast<float>(weights.extra);
  const auto cap = static_cast<float>(softcap);
  at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sums[static_cast<size_t>(i)] = cpu::table().loss_row(
          from + i * classes, {classes, target[i], each, extra, cap}, gradient);
  });
  return sums;
}

/// What a batch of rows costs; gradients where they are wanted, else each token's own.
struct Losses {
  at::Tensor loss, nll, right;  ///< scalars
  ForwardSlopes slopes;
  at::Tensor token_nll;  ///< fp64 [N]
};

Losses losses_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                 double smoothing, int64_t num_classes, const at::Tensor& bias, double softcap,
                 bool want_gradient) {
  // d loss / d logits = p - each everywhere, and extra less at the target, because the weights of
  // all classes sum to one.
  const SmoothingWeights weights(smoothing, num_classes);
  const at::Tensor classes = weight.slice(0, 0, num_classes);
  const at::Tensor shift = bias.defined() ? bias.slice(0, 0, num_classes) : bias;
  const Projection projection(
      classes,
      {.rows = x.size(0), .slope_scale = ForwardSlopes::kScale, .backward = want_gradient});
  Losses out;
  auto& [dx, dweight, dbias] = out.slopes;
  if (want_gradient) {
    dx = is_half(ComputeScope::current()) ? at::zeros_like(x) : at::empty_like(x);
    dweight = at::zeros_like(weight);
    if (bias.defined()) dbias = at::zeros_like(bias);
  } else {
    out.token_nll = at::empty({x.size(0)}, at::kDouble);
  }
  const at::Tensor buffer = at::empty({std::min(kLossRows, x.size(0)), num_classes}, x.options());
  cpu::LossSums sums{};
  int64_t right = 0;
  for (int64_t begin = 0; begin < x.size(0); begin += kLossRows) {
    const int64_t end = std::min(begin + kLossRows, x.size(0));
    const at::Tensor rows = x.slice(0, begin, end);
    at::Tensor logits = buffer.slice(0, 0, end - begin);
    projection.logits(rows, shift, logits);
    cpu::LossSums block{};
    int64_t token = begin;
    for (const cpu::LossSums& row :
         rows_of_loss(logits, targets.slice(0, begin, end), weights, softcap, want_gradient)) {
      block.nll += row.nll;
      block.all += row.all;
      right += row.right ? 1 : 0;
      if (!want_gradient) out.token_nll.data_ptr<double>()[token++] = row.nll;
    }
    sums.nll += block.nll;
    sums.all += block.all;
    if (!want_gradient) continue;
    if (dbias.defined()) dbias.slice(0, 0, num_classes).add_(gemm::column_sums(logits));
    at::Tensor dx_block = dx.slice(0, begin, end), dw = dweight.slice(0, 0, num_classes);
    projection.gradients(logits, rows, dx_block, dw);
  }
  out.loss = scalar_of(weights.extra * sums.nll + weights.each * sums.all);
  out.nll = scalar_of(sums.nll);
  out.right = at::scalar_tensor(right, at::kLong);
  return out;
}

struct LossNode : torch::autograd::Function<LossNode> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                               double smoothing, int64_t num_classes, double softcap) {
    const Losses losses = losses_of(x, weight, targets, smoothing, num_classes,
                                    bias.value_or(at::Tensor()), softcap, true);
    losses.slopes.keep(ctx);
    ctx->mark_non_differentiable({losses.nll, losses.right});
    return {losses.loss, losses.nll, losses.right};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto slopes = ForwardSlopes::of_backward(ctx, grads[0]);
    return {slopes.dx, slopes.dweight, slopes.dbias, {}, {}, {}, {}};
  }
};

}  // namespace

CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias, double softcap) {
  const at::Tensor shift = bias.defined() ? bias.contiguous() : bias;
  if (!wants_gradient(x, weight, bias)) {
    tell_linear_inputs(x, weight);
    const at::Tensor table = stood_for(weight) ? weight : weight.contiguous();
    const Losses losses = losses_of(x.contiguous(), table, targets.contiguous(), smoothing,
                                    num_classes, shift, softcap, false);
    return {losses.loss, losses.nll, losses.token_nll, {}, losses.right};
  }
  const auto sums =
      LossNode::apply(x.contiguous(), weight.contiguous(),
                      shift.defined() ? std::optional<at::Tensor>(shift) : std::nullopt,
                      targets.contiguous(), smoothing, num_classes, softcap);
  return {.loss_sum = sums[0], .nll_sum = sums[1].detach(), .right_sum = sums[2].detach()};
}

}  // namespace stretto::kernels::fused
