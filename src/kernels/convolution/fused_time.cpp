#include <ATen/ATen.h>

#include <optional>

#include "kernels/convolution/filtering.h"
#include "kernels/convolution/fused.h"
#include "kernels/convolution/lines.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

/// Numbers [O, K * C] of one tap, as a matrix [O, C].
at::Tensor of_tap(const at::Tensor& weight, int64_t tap, int64_t width) {
  return weight.slice(1, tap * width, (tap + 1) * width);
}

/// out = the sum over taps i of rows lines[:, i] of x times the factor of i, by libtorch.
template <class Factor>
void add_taps(const at::Tensor& x, const at::Tensor& lines, Compute compute, const Factor& factor,
              at::Tensor& out) {
  const at::Tensor rows = rounded(x, compute);
  for (int64_t tap = 0; tap < lines.size(1); ++tap)
    gemm::multiply_by_libtorch({gather_rows(rows, lines, tap)}, factor(tap), tap > 0,
                               Compute::kFp32, out);
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& lines, Compute compute) {
  at::Tensor out = at::empty({lines.size(0), weight.size(0)}, x.options());
  if (gemm::takes_gathered()) {
    gemm::multiply_gathered({x, lines}, gemm::Packed({weight, true}, compute), bias, false, out);
    return out;
  }
  const at::Tensor table = rounded(weight, compute);
  add_taps(
      x, lines, compute,
      [&](int64_t tap) {
        return gemm::Operand{of_tap(table, tap, x.size(1)), true};
      },
      out);
  if (bias.defined()) out.add_(rounded(bias, compute));
  round_(out, compute);
  return out;
}

/// The weight as filter_rows takes it: taps, and what goes in and out of them.
at::Tensor forward_filters(const at::Tensor& weight, int64_t kernel) {
  return weight.view({weight.size(0), kernel, -1}).permute({1, 2, 0});
}
at::Tensor backward_filters(const at::Tensor& weight, int64_t kernel) {
  return weight.view({weight.size(0), kernel, -1}).permute({1, 0, 2});
}

struct ConvolutionSlopes {
  const at::Tensor &x, &weight, &dy, &lines, &back;
  int64_t stride;
  Compute compute;

  int64_t taps() const { return lines.size(1); }

  at::Tensor of_x() const {
    at::Tensor dx = at::empty_like(x);
    // A row of x gets the taps' rows of dy side by side times their filters one below the other.
    const at::Tensor filters = backward_filters(weight, taps());
    if (gemm::takes_gathered()) {
      const at::Tensor factor = filters.reshape({taps() * weight.size(0), x.size(1)});
      gemm::multiply_gathered({dy, back}, gemm::Packed({factor}, compute), {}, false, dx);
      return dx;
    }
    const at::Tensor table = rounded(filters.contiguous(), compute);
    add_taps(
        dy, back, compute, [&](int64_t tap) { return gemm::Operand{table[tap]}; }, dx);
    round_(dx, compute);
    return dx;
  }

  at::Tensor of_weight() const {
    at::Tensor dweight = at::empty_like(weight);
    if (gemm::takes_gathered() && stride == 1) {
      at::Tensor parts = dweight.view({weight.size(0), taps(), x.size(1)});
      gemm::multiply_transposed({dy, back}, gemm::Packed({x}, compute), parts);
      return dweight;
    }
    // With a stride most rows of x meet no row of dy in a tap, so that sums over rows of dy are
    // shorter than those over rows of x.
    for (int64_t tap = 0; tap < taps(); ++tap) {
      at::Tensor part = of_tap(dweight, tap, x.size(1));
      const at::Tensor rows = gather_rows(x, lines, tap);
      if (gemm::takes_gathered())
        gemm::multiply({dy, true}, gemm::Packed({rows}, compute), {}, false, part);
      else
        gemm::multiply_by_libtorch({dy, true}, {rows}, false, compute, part);
    }
    if (!gemm::takes_gathered()) round_(dweight, compute);
    return dweight;
  }
};

struct FilteredConvolutionNode : torch::autograd::Function<FilteredConvolutionNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const TimeWindow& window) {
    const at::Tensor rows = x.contiguous(), table = weight.contiguous();
    const Tiles tiles = forward_tiles(window), back = backward_tiles(window);
    ctx->saved_data["biased"] = bias.has_value();
    ctx->save_for_backward({rows, table, tiles.inputs, tiles.outputs, back.inputs, back.outputs});
    return filter_rows(rows, tiles, forward_filters(table, window.kernel), TapOrder::kForward,
                       bias ? bias->contiguous() : at::Tensor());
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    const Tiles tiles{saved[2], saved[3]}, back{saved[4], saved[5]};
    at::Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0))
      dx = filter_rows(dy, back, backward_filters(weight, tiles.inputs.size(1) - 1),
                       TapOrder::kReverse, {});
    if (ctx->needs_input_grad(1)) dweight = filter_slopes(x, dy, tiles);
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy);
    return {dx, dweight, dbias, {}};
  }
};

struct TimeConvolutionNode : torch::autograd::Function<TimeConvolutionNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const TimeWindow& window) {
    const at::Tensor rows = x.contiguous(), table = weight.contiguous();
    const at::Tensor lines = input_lines(window);
    const Compute compute = ComputeScope::current();
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["stride"] = window.stride;
    keep(ctx, compute);
    ctx->save_for_backward({rows, table, lines, output_lines(window)});
    return convolve(rows, table, bias ? bias->contiguous() : at::Tensor(), lines, compute);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor dy = grads[0].contiguous();
    const ConvolutionSlopes slopes{.x = saved[0],
                                   .weight = saved[1],
                                   .dy = dy,
                                   .lines = saved[2],
                                   .back = saved[3],
                                   .stride = ctx->saved_data["stride"].toInt(),
                                   .compute = kept_compute(ctx)};
    at::Tensor dbias;
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy);
    return {ctx->needs_input_grad(0) ? slopes.of_x() : at::Tensor(),
            ctx->needs_input_grad(1) ? slopes.of_weight() : at::Tensor(),
            dbias,
            {}};
  }
};

}  // namespace

at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window) {
  const Compute compute = ComputeScope::current();
  const bool filtered = is_filtered(window, x.size(1), weight.size(0), compute);
  if (!at::GradMode::is_enabled()) {
    const at::Tensor rows = x.contiguous(), table = weight.contiguous();
    const at::Tensor shift = bias.defined() ? bias.contiguous() : bias;
    return filtered ? filter_rows(rows, forward_tiles(window),
                                  forward_filters(table, window.kernel), TapOrder::kForward, shift)
                    : convolve(rows, table, shift, input_lines(window), compute);
  }
  const auto shift = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
  return filtered ? FilteredConvolutionNode::apply(x, weight, shift, window)
                  : TimeConvolutionNode::apply(x, weight, shift, window);
}

}  // namespace stretto::kernels::fused
