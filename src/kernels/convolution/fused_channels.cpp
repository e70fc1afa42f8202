#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <optional>

#include "kernels/convolution/fused.h"
#include "kernels/convolution/lines.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

constexpr int64_t kColumnBlock = 64;  // of one thread's sums over rows; part of their rounding

cpu::ChannelItem channels_of(const at::Tensor& x, const at::Tensor& lines,
                             const at::Tensor& weights) {
  return {.x = x.const_data_ptr<float>(),
          .lines = lines.const_data_ptr<int32_t>(),
          .taps = lines.size(1),
          .width = x.size(1),
          .weights = weights.const_data_ptr<float>()};
}

/// filters [K, C], bias [C] or undefined.
at::Tensor filter_channels(const at::Tensor& x, const at::Tensor& filters, const at::Tensor& bias,
                           const at::Tensor& lines) {
  at::Tensor out = at::empty({lines.size(0), x.size(1)}, x.options());
  const cpu::ChannelItem item = channels_of(x, lines, filters);
  const float* add = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  float* to = out.data_ptr<float>();
  at::parallel_for(0, lines.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().convolution.depthwise(item, add, to, begin, end);
  });
  return out;
}

/// The gradient of filters: [K, C].
at::Tensor channel_slopes(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& lines) {
  at::Tensor slopes = at::empty({lines.size(1), x.size(1)}, x.options());
  const cpu::ChannelItem item = channels_of(x, lines, slopes);
  const float* from = dy.const_data_ptr<float>();
  float* to = slopes.data_ptr<float>();
  const int64_t blocks = (x.size(1) + kColumnBlock - 1) / kColumnBlock;
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::table().convolution.depthwise_slopes(item, from, lines.size(0), to, i * kColumnBlock,
                                                std::min((i + 1) * kColumnBlock, x.size(1)));
  });
  return slopes;
}

struct DepthwiseNode : torch::autograd::Function<DepthwiseNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const TimeWindow& window) {
    const Compute compute = ComputeScope::current();
    const at::Tensor rows = rounded(x.contiguous(), compute);
    const at::Tensor filters = rounded(weight.t().contiguous(), compute);
    const at::Tensor lines = input_lines(window);
    const at::Tensor shift = bias ? rounded(bias->contiguous(), compute) : at::Tensor();
    at::Tensor out = filter_channels(rows, filters, shift, lines);
    round_(out, compute);
    ctx->saved_data["biased"] = bias.has_value();
    keep(ctx, compute);
    ctx->save_for_backward({rows, filters, lines, output_lines(window)});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Compute compute = kept_compute(ctx);
    const at::Tensor dy = grads[0].contiguous(), slopes = rounded(dy, compute);
    at::Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0)) {
      dx = filter_channels(slopes, saved[1], {}, saved[3]);
      round_(dx, compute);
    }
    if (ctx->needs_input_grad(1)) {
      dweight = channel_slopes(saved[0], slopes, saved[2]).t().contiguous();
      round_(dweight, compute);
    }
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy);
    return {dx, dweight, dbias, {}};
  }
};

cpu::HeadItem heads_of(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                       const at::Tensor& lines, bool by_line) {
  return {.channels = channels_of(x, lines, weights),
          .heads = num_heads,
          .weight_step = weights.size(0) == 1 ? 0 : weights.size(1),
          .by_line = by_line};
}

at::Tensor weigh_windows(const cpu::HeadItem& item, int64_t rows, const at::Tensor& x) {
  at::Tensor out = at::empty({rows, x.size(1)}, x.options());
  float* to = out.data_ptr<float>();
  at::parallel_for(0, rows, kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().convolution.heads(item, to, begin, end);
  });
  return out;
}

/// The gradient of weights: [M, H * K].
at::Tensor weight_slopes(const cpu::HeadItem& item, const at::Tensor& dy) {
  at::Tensor slopes = at::empty({dy.size(0), item.heads * item.channels.taps}, dy.options());
  const float* from = dy.const_data_ptr<float>();
  float* to = slopes.data_ptr<float>();
  at::parallel_for(0, dy.size(0), kRowGrain, [&](int64_t begin, int64_t end) {
    cpu::table().convolution.head_slopes(item, from, to, begin, end);
  });
  return slopes;
}

/// Each row masked by its own mask; filters that all rows share are first repeated for them.
at::Tensor masked(const at::Tensor& x, const Dropout& dropout) {
  if (!dropout.active()) return x;
  return masked_rows(x.expand({dropout.row_keys.size(0), x.size(1)}), {}, dropout);
}

struct WeighNode : torch::autograd::Function<WeighNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weights,
                            int64_t num_heads, const Dropout& drop_connect,
                            const TimeWindow& window) {
    const Compute compute = ComputeScope::current();
    const at::Tensor rows = rounded(x.contiguous(), compute), lines = input_lines(window);
    const at::Tensor dropped = rounded(masked(weights.contiguous(), drop_connect), compute);
    at::Tensor out =
        weigh_windows(heads_of(rows, dropped, num_heads, lines, false), lines.size(0), rows);
    round_(out, compute);
    ctx->saved_data["heads"] = num_heads;
    ctx->saved_data["shared"] = weights.size(0) == 1;
    keep(ctx, drop_connect);
    keep(ctx, compute);
    ctx->save_for_backward({rows, dropped, lines, output_lines(window)});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weights = saved[1], &lines = saved[2], &back = saved[3];
    const Compute compute = kept_compute(ctx);
    const int64_t num_heads = ctx->saved_data["heads"].toInt();
    const at::Tensor dy = rounded(grads[0].contiguous(), compute);
    at::Tensor dx, dweights;
    if (ctx->needs_input_grad(0)) {
      dx = weigh_windows(heads_of(dy, weights, num_heads, back, true), x.size(0), dy);
      round_(dx, compute);
    }
    if (ctx->needs_input_grad(1)) {
      dweights = weight_slopes(heads_of(x, weights, num_heads, lines, false), dy);
      round_(dweights, compute);
      dweights = masked(dweights, kept(ctx));
      if (ctx->saved_data["shared"].toBool()) dweights = gemm::column_sums(dweights).unsqueeze(0);
    }
    return {dx, dweights, {}, {}, {}};
  }
};

}  // namespace

at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window) {
  return DepthwiseNode::apply(
      x, weight, bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt, window);
}

at::Tensor weigh(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                 const Dropout& drop_connect, const TimeWindow& window) {
  return WeighNode::apply(x, weights, num_heads, drop_connect, window);
}

at::Tensor weigh_lines(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                       const at::Tensor& lines) {
  const Compute compute = ComputeScope::current();
  const at::Tensor rows = rounded(x, compute), shares = rounded(weights, compute);
  at::Tensor out =
      weigh_windows(heads_of(rows, shares, num_heads, lines, false), lines.size(0), rows);
  round_(out, compute);
  return out;
}

}  // namespace stretto::kernels::fused
