#include "kernels/convolution/convolution.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/cast.h"
#include "kernels/convolution/fused.h"
#include "kernels/convolution/reference.h"
#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

bool are_fused(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  return is_fused(x) && is_fused(weight) && (!bias.defined() || is_fused(bias));
}

void check_window(const at::Tensor& x, const TimeWindow& window, const char* name) {
  check_rows(x, name);
  TORCH_CHECK(window.kernel > 0 && window.dilation > 0 && window.stride > 0, "[kernels] ", name,
              ": kernel, dilation and stride must be above 0, got ", window.kernel, ", ",
              window.dilation, " and ", window.stride);
  check_offsets(window.offsets, x.size(0), name);
}

void check_bias(const at::Tensor& bias, int64_t width, const char* name) {
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == width), "[kernels] ", name,
              ": bias must be [", width, "], got ", bias.sizes());
}

/// Rows that come out.
int64_t rows_of(const TimeWindow& window, const at::Tensor& x) {
  if (window.stride == 1) return x.size(0);
  return output_offsets(window).values[-1].item<int64_t>();
}

/// weights [M or 1, H, K], normalised.
at::Tensor weigh(const at::Tensor& x, const at::Tensor& weights, const Dropout& drop_connect,
                 const TimeWindow& window) {
  if (are_fused(x, weights))
    return fused::weigh(x, weights.flatten(1), weights.size(1), drop_connect, window);
  const at::Tensor dropped = reference::drop_weights(weights, drop_connect);
  const auto weighed = [&](const at::Tensor& rows, const at::Tensor& shares) {
    return reference::weigh(reference::windows(rows, window), shares);
  };
  const Compute compute = cuda_compute(x);
  return is_half(compute) ? cast::in_half(compute, weighed, x, dropped) : weighed(x, dropped);
}

void check_attention(const at::Tensor& q, const at::Tensor& keys, const MultiStepAttention& options,
                     const char* name) {
  check_rows(q, name);
  check_rows(keys, name);
  TORCH_CHECK(keys.size(1) == q.size(1), "[kernels] ", name, ": keys must be ", q.size(1),
              " wide as the queries, got ", keys.size(1));
  check_offsets(options.query_offsets, q.size(0), name);
  check_offsets(options.key_offsets, keys.size(0), name);
  TORCH_CHECK(options.query_offsets.values.sizes() == options.key_offsets.values.sizes(),
              "[kernels] ", name, ": queries and keys have different numbers of sequences");
}

struct ScaleGradientNode : torch::autograd::Function<ScaleGradientNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x,
                            double factor) {
    ctx->saved_data["factor"] = factor;
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0] * ctx->saved_data["factor"].toDouble(), {}};
  }
};

}  // namespace

at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window) {
  check_window(x, window, "time_convolution");
  TORCH_CHECK(weight.dim() == 2 && weight.size(1) == window.kernel * x.size(1),
              "[kernels] time_convolution: weight must be [outputs, ", window.kernel, " taps * ",
              x.size(1), " channels], got ", weight.sizes());
  check_bias(bias, weight.size(0), "time_convolution");
  if (are_fused(x, weight, bias)) return fused::time_convolution(x, weight, bias, window);
  if (const auto kernel = on_gpu(cuda::table().time_convolution, x, weight))
    return kernel(x, weight, bias, window);
  return linear(reference::windows(x, window).flatten(1), weight, bias);
}

at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window) {
  check_window(x, window, "depthwise_convolution");
  TORCH_CHECK(weight.dim() == 2 && weight.size(0) == x.size(1) && weight.size(1) == window.kernel,
              "[kernels] depthwise_convolution: weight must be [", x.size(1), ", ", window.kernel,
              "], got ", weight.sizes());
  check_bias(bias, x.size(1), "depthwise_convolution");
  if (are_fused(x, weight, bias)) return fused::depthwise_convolution(x, weight, bias, window);
  if (const auto kernel = on_gpu(cuda::table().depthwise_convolution, x, weight))
    return kernel(x, weight, bias, window);
  const Compute compute = cuda_compute(x);
  if (!is_half(compute)) return reference::depthwise_convolution(x, weight, bias, window);
  const at::Tensor sum = cast::in_half(
      compute,
      [&](const at::Tensor& rows, const at::Tensor& filters) {
        return reference::depthwise_convolution(rows, filters, {}, window);
      },
      x, weight);
  return bias.defined() ? sum + bias : sum;
}

at::Tensor light_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const Dropout& drop_connect, const TimeWindow& window) {
  check_window(x, window, "light_convolution");
  TORCH_CHECK(weight.dim() == 2 && weight.size(1) == window.kernel,
              "[kernels] light_convolution: weight must be [heads, ", window.kernel, "], got ",
              weight.sizes());
  check_heads(x.size(1), weight.size(0), "light_convolution");
  check_dropout(drop_connect, rows_of(window, x), "light_convolution");
  if (const auto kernel = on_gpu(cuda::table().light_convolution, x, weight))
    return kernel(x, weight, drop_connect, window);
  return weigh(x, at::softmax(weight, -1).unsqueeze(0), drop_connect, window);
}

at::Tensor dynamic_convolution(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                               const Dropout& drop_connect, const TimeWindow& window) {
  check_window(x, window, "dynamic_convolution");
  check_heads(x.size(1), num_heads, "dynamic_convolution");
  const int64_t rows = rows_of(window, x);
  TORCH_CHECK(
      weights.dim() == 2 && weights.size(0) == rows && weights.size(1) == num_heads * window.kernel,
      "[kernels] dynamic_convolution: weights must be [", rows, ", ", num_heads, " heads * ",
      window.kernel, " taps], got ", weights.sizes());
  check_dropout(drop_connect, rows, "dynamic_convolution");
  if (const auto kernel = on_gpu(cuda::table().dynamic_convolution, x, weights))
    return kernel(x, weights, num_heads, drop_connect, window);
  const at::Tensor raw = weights.reshape({rows, num_heads, window.kernel});
  return weigh(x, at::softmax(raw, -1), drop_connect, window);
}

at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  check_rows(x, "glu");
  TORCH_CHECK(x.size(1) % 2 == 0, "[kernels] glu: width must be even, got ", x.size(1));
  check_bias(bias, x.size(1), "glu");
  check_dropout(dropout, x.size(0), "glu");
  if (are_fused(x, x, bias)) return fused::glu(x, bias, dropout);
  const auto kernel = on_gpu(cuda::table().glu, x);
  return kernel != nullptr ? kernel(x, bias, dropout) : reference::glu(x, bias, dropout);
}

at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain) {
  check_rows(v, "weight_norm");
  TORCH_CHECK(gain.dim() == 1 && gain.size(0) == v.size(0), "[kernels] weight_norm: gain must be [",
              v.size(0), "], got ", gain.sizes());
  if (are_fused(v, gain)) return fused::weight_norm(v, gain);
  const auto kernel = on_gpu(cuda::table().weight_norm, v, gain);
  return kernel != nullptr ? kernel(v, gain) : reference::weight_norm(v, gain);
}

at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options) {
  check_attention(q, keys, options, "multi_step_attention");
  TORCH_CHECK(values.sizes() == keys.sizes(), "[kernels] multi_step_attention: values must be ",
              keys.sizes(), " as the keys, got ", values.sizes());
  if (are_fused(q, keys, values)) return fused::multi_step_attention(q, keys, values, options);
  if (const auto kernel = on_gpu(cuda::table().multi_step_attention, q, keys))
    return kernel(q, keys, values, options);
  const auto attend = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return reference::multi_step_attention(a, b, c, options);
  };
  const Compute compute = cuda_compute(q);
  return is_half(compute) ? cast::in_half(compute, attend, q, keys, values)
                          : attend(q, keys, values);
}

at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options) {
  check_attention(q, keys, options, "multi_step_attention_weights");
  if (are_fused(q, keys)) return fused::multi_step_attention_weights(q, keys, options);
  const auto kernel = on_gpu(cuda::table().multi_step_attention_weights, q, keys);
  return kernel != nullptr ? kernel(q, keys, options)
                           : reference::multi_step_attention_weights(q, keys, options);
}

at::Tensor scale_gradient(const at::Tensor& x, double factor) {
  return ScaleGradientNode::apply(x, factor);
}

}  // namespace stretto::kernels
