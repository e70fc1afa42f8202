#include "kernels/loss/r_drop.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/cast.h"
#include "kernels/dispatch.h"
#include "kernels/fused_common.h"
#include "kernels/loss/smoothing.h"
#include "kernels/rounding.h"

namespace stretto::kernels::r_drop {
namespace {

using fused::AutogradContext, fused::variable_list;

/// Logits of one pass at a time; about seven tensors of this size are alive.
int64_t logits_of_a_block(const at::Tensor& x) {
  return int64_t{1} << (x.is_cuda() ? 24 : 20);
}

/// Products in the type of x, or of fp32 rows on a GPU as the scope says. Sums are fp32 at least.
class AnyProjection {
 public:
  AnyProjection(const at::Tensor& x, const at::Tensor& classes)
      : compute_(cuda_compute(x)),
        tf32_(compute_ == Compute::kTf32),
        x_(narrow(x)),
        classes_(narrow(classes)) {}

  Compute compute() const { return compute_; }
  at::ScalarType wide() const { return x_.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }
  /// @param bias  of the classes, may be undefined
  at::Tensor logits(int64_t begin, int64_t end, const at::Tensor& bias) const {
    at::Tensor all = at::mm(x_.slice(0, begin, end), classes_.t());
    if (bias.defined()) all.add_(bias.to(all.scalar_type()));
    return all.to(wide());
  }
  void gradients(const at::Tensor& slopes, int64_t begin, int64_t end, Losses& out) const {
    const at::Tensor given = slopes.to(x_.scalar_type());
    out.dx.slice(0, begin, end).copy_(product(given, classes_));
    out.dweight.slice(0, 0, classes_.size(0)).add_(product(given.t(), x_.slice(0, begin, end)));
  }

 private:
  at::Tensor narrow(const at::Tensor& x) const {
    return is_half(compute_) ? x.to(half_type(compute_)) : x;
  }
  /// Not rounded.
  at::Tensor product(const at::Tensor& a, const at::Tensor& b) const {
    if (a.scalar_type() == wide()) return at::mm(a, b);
    return a.is_cuda() ? at::mm(a, b, at::kFloat) : at::mm(a.to(at::kFloat), b.to(at::kFloat));
  }

  Compute compute_;
  cast::Tf32Guard tf32_;
  at::Tensor x_, classes_;
};

/// One pass over the tokens of a block. log_p and slopes [rows, V].
struct Pass {
  at::Tensor log_p, p;
  at::Tensor nll, all;  ///< [rows]: -log p of the target, and summed over all classes

  Pass(const at::Tensor& logits, const at::Tensor& targets)
      : log_p(at::log_softmax(logits, 1)),
        p(log_p.exp()),
        nll(-log_p.gather(1, targets).squeeze(1)),
        all(-log_p.sum(1)) {}

  /// d (half a cross entropy + 2 pull kl) / d logits.
  /// @param ahead  log_p less that of the other pass
  /// @param apart  p less that of the other pass
  at::Tensor slopes(const at::Tensor& ahead, const at::Tensor& apart, const at::Tensor& targets,
                    const SmoothingWeights& weights, double pull) const {
    const at::Tensor distance = (p * ahead).sum(1, /*keepdim=*/true);
    at::Tensor out = (ahead - distance).mul_(p).add_(apart).mul_(pull);
    out.add_(p, 0.5).sub_(0.5 * weights.each);
    return out.scatter_add_(1, targets,
                            at::full_like(targets, -0.5 * weights.extra, out.options()));
  }
};

Losses losses_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                 const RDrop& options, const at::Tensor& bias, bool want_gradient) {
  const bool all_fp32 = is_fused(x) && is_fused(weight) && (!bias.defined() || is_fused(bias));
  return all_fp32 ? of_fp32_rows(x, weight, targets, options, bias, want_gradient)
                  : of_any_rows(x, weight, targets, options, bias, want_gradient);
}

struct RDropNode : torch::autograd::Function<RDropNode> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                               const std::optional<at::Tensor>& bias, const at::Tensor& targets,
                               const RDrop& options) {
    const Losses losses = losses_of(x, weight, targets, options, bias.value_or(at::Tensor()), true);
    const bool rounds = x.scalar_type() == at::kFloat;
    fused::keep(ctx, rounds ? ComputeScope::current() : Compute::kFp32);
    ctx->saved_data["slope_scale"] = static_cast<double>(slope_scale(options));
    ctx->saved_data["dx"] = losses.dx;
    ctx->saved_data["dweight"] = losses.dweight.to(weight.scalar_type());
    ctx->saved_data["biased"] = bias.has_value();
    if (bias) ctx->saved_data["dbias"] = losses.dbias.to(bias->scalar_type());
    ctx->mark_non_differentiable({losses.nll, losses.kl});
    return {losses.loss, losses.nll, losses.kl};
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Compute compute = fused::kept_compute(ctx);
    // Rounded at the scale that the loss came back with. A scalar tensor does not widen the type of
    // what it multiplies.
    const auto scaled = [&](const char* name) {
      const at::Tensor slope = ctx->saved_data[name].toTensor();
      const double unscaled =
          compute == Compute::kFp16 ? 1 / ctx->saved_data["slope_scale"].toDouble() : 1;
      const at::Tensor factor = grads[0] * unscaled;
      // The usual factor on a CPU is one; to ask a GPU for it would mean to wait.
      const bool as_it_is = factor.is_cpu() && factor.item<double>() == 1;
      const at::Tensor given = as_it_is ? slope : slope * factor;
      return is_half(compute) ? given.to(half_type(compute)).to(at::kFloat) : given;
    };
    at::Tensor dbias;
    if (ctx->saved_data["biased"].toBool()) dbias = ctx->saved_data["dbias"].toTensor() * grads[0];
    return {scaled("dx"), scaled("dweight"), dbias, {}, {}};
  }
};

}  // namespace

float slope_scale(const RDrop& options) {
  return static_cast<float>(std::exp2(13 - std::ceil(std::log2(1 + options.alpha))));
}

Losses of_any_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                   const RDrop& options, const at::Tensor& bias, bool want_gradient) {
  const SmoothingWeights weights(options.smoothing, options.num_classes);
  const int64_t tokens = targets.size(0);
  const at::Tensor shift = bias.defined() ? bias.slice(0, 0, options.num_classes) : bias;
  const AnyProjection projection(x, weight.slice(0, 0, options.num_classes));
  const at::ScalarType wide = projection.wide();
  Losses out;
  if (want_gradient) {
    out.dx = at::empty_like(x);
    // Blocks are added in fp32: a sum of bf16 sums would lose what later blocks bring.
    out.dweight = at::zeros(weight.sizes(), weight.options().dtype(wide));
    if (bias.defined()) out.dbias = at::zeros(bias.sizes(), bias.options().dtype(wide));
  }
  const at::Tensor sums = at::zeros({3}, x.options().dtype(at::kDouble));
  const double scale = projection.compute() == Compute::kFp16 ? slope_scale(options) : 1;
  const int64_t step = std::max<int64_t>(logits_of_a_block(x) / options.num_classes, 16);
  const auto add_gradients = [&](const at::Tensor& slopes, int64_t begin, int64_t end) {
    if (out.dbias.defined()) out.dbias.slice(0, 0, options.num_classes).add_(slopes.sum(0));
    projection.gradients(slopes.mul_(scale), begin, end, out);
  };
  for (int64_t begin = 0; begin < tokens; begin += step) {
    const int64_t end = std::min(begin + step, tokens);
    // A target of no class costs NaN, as on any GPU (on a CPU it was refused).
    const at::Tensor wanted = targets.slice(0, begin, end).unsqueeze(1);
    const at::Tensor known = wanted.clamp(0, options.num_classes - 1);
    const Pass first(projection.logits(begin, end, shift), known),
        second(projection.logits(tokens + begin, tokens + end, shift), known);
    at::Tensor ahead = first.log_p - second.log_p, apart = first.p - second.p;
    const at::Tensor nll =
        (first.nll + second.nll)
            .masked_fill_(wanted.ne(known).squeeze(1), std::numeric_limits<double>::quiet_NaN())
            .sum(at::kDouble);
    const at::Tensor all = (first.all + second.all).sum(at::kDouble);
    const at::Tensor kl = (apart * ahead).sum(1).sum(at::kDouble) / 2;
    sums.add_(at::stack(
        {(weights.extra * nll + weights.each * all + options.alpha * kl) / 2, nll / 2, kl}));
    if (!want_gradient) continue;
    const double pull = options.alpha / 4;
    add_gradients(first.slopes(ahead, apart, known, weights, pull), begin, end);
    add_gradients(second.slopes(ahead.neg_(), apart.neg_(), known, weights, pull), tokens + begin,
                  tokens + end);
  }
  const at::Tensor values = sums.to(wide);
  out.loss = values[0].clone();
  out.nll = values[1].clone();
  out.kl = values[2].clone();
  return out;
}

CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias) {
  const at::Tensor rows = x.contiguous(), table = weight.contiguous();
  // In the type of the rows: a bias does not choose the form.
  const at::Tensor shift = bias.defined() ? bias.to(x.scalar_type()).contiguous() : bias;
  const at::Tensor ids = targets.to(x.device(), at::kLong).contiguous();
  if (!wants_gradient(x, weight, bias)) {
    const Losses losses = losses_of(rows, table, ids, options, shift, false);
    return {.loss_sum = losses.loss, .nll_sum = losses.nll, .kl_sum = losses.kl};
  }
  const auto sums = RDropNode::apply(
      rows, table, shift.defined() ? std::optional<at::Tensor>(shift) : std::nullopt, ids, options);
  return {.loss_sum = sums[0], .nll_sum = sums[1].detach(), .kl_sum = sums[2].detach()};
}

}  // namespace stretto::kernels::r_drop
