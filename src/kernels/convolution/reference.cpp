#include "kernels/convolution/reference.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <vector>

#include "kernels/reference.h"

namespace stretto::kernels::reference {
namespace {

std::vector<int64_t> ends_of(const Offsets& offsets) {
  const at::Tensor host = offsets.values.to(at::kCPU, at::kLong).contiguous();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

/// One pair of sequences of an attention.
struct Pair {
  at::Tensor q, keys, values;

  at::Tensor weights() const { return at::softmax(at::matmul(q, keys.t()), -1); }
};

template <class Call>
std::vector<at::Tensor> for_each_pair(const at::Tensor& q, const at::Tensor& keys,
                                      const at::Tensor& values, const MultiStepAttention& options,
                                      const Call& call) {
  const auto rows = ends_of(options.query_offsets), cols = ends_of(options.key_offsets);
  std::vector<at::Tensor> all;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    if (rows[i] == rows[i + 1]) continue;
    all.push_back(call(Pair{q.slice(0, rows[i], rows[i + 1]), keys.slice(0, cols[i], cols[i + 1]),
                            values.defined() ? values.slice(0, cols[i], cols[i + 1]) : values}));
  }
  return all;
}

}  // namespace

at::Tensor seen_rows(const TimeWindow& window, int64_t rows) {
  const at::Tensor in = window.offsets.values.to(at::kLong);
  const at::Tensor out = output_offsets(window).values.to(at::kLong);
  const int64_t count = window.stride == 1 ? rows : out[-1].item<int64_t>();
  const at::Tensor row = at::arange(count, out.options());
  const at::Tensor sequence = at::bucketize(row, out.slice(0, 1), false, true);
  const at::Tensor first = in.index_select(0, sequence).unsqueeze(1);
  const at::Tensor length = in.index_select(0, sequence + 1).unsqueeze(1) - first;
  const at::Tensor step = (row - out.index_select(0, sequence)) * window.stride - window.left();
  const at::Tensor seen =
      step.unsqueeze(1) + at::arange(window.kernel, out.options()) * window.dilation;
  return at::where(seen.ge(0).logical_and(seen.lt(length)), seen + first,
                   at::full({}, rows, out.options()));
}

at::Tensor windows(const at::Tensor& x, const TimeWindow& window) {
  const at::Tensor with_zeroes = at::cat({x, at::zeros({1, x.size(1)}, x.options())});
  // An embedding, since its backward adds in a fixed order where that of index_select does not.
  return at::embedding(with_zeroes, seen_rows(window, x.size(0)), x.size(0));
}

at::Tensor weigh(const at::Tensor& windows, const at::Tensor& weights) {
  const int64_t heads = weights.size(1);
  const at::Tensor split =
      windows.view({windows.size(0), windows.size(1), heads, windows.size(2) / heads});
  const at::Tensor shares = weights.transpose(1, 2).unsqueeze(3);  // [M or 1, K, H, 1]
  return (split * shares).sum(1).flatten(1);
}

at::Tensor drop_weights(const at::Tensor& weights, const Dropout& drop_connect) {
  if (!drop_connect.active()) return weights;
  const int64_t heads = weights.size(1), taps = weights.size(2);
  const at::Tensor factors = dropout_factors(drop_connect, drop_connect.row_keys, 0, heads * taps);
  return weights * factors.view({-1, heads, taps}).to(weights.device(), weights.scalar_type());
}

at::Tensor time_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const TimeWindow& window) {
  const at::Tensor rows = windows(x, window).flatten(1);
  return bias.defined() ? at::linear(rows, weight, bias) : at::linear(rows, weight);
}

at::Tensor depthwise_convolution(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const TimeWindow& window) {
  const at::Tensor sum = (windows(x, window) * weight.t()).sum(1);
  return bias.defined() ? sum + bias : sum;
}

at::Tensor light_convolution(const at::Tensor& x, const at::Tensor& weight,
                             const Dropout& drop_connect, const TimeWindow& window) {
  return weigh(windows(x, window),
               drop_weights(at::softmax(weight, -1).unsqueeze(0), drop_connect));
}

at::Tensor dynamic_convolution(const at::Tensor& x, const at::Tensor& weights, int64_t num_heads,
                               const Dropout& drop_connect, const TimeWindow& window) {
  const at::Tensor raw = weights.view({weights.size(0), num_heads, window.kernel});
  return weigh(windows(x, window), drop_weights(at::softmax(raw, -1), drop_connect));
}

at::Tensor glu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout) {
  const at::Tensor gated = at::glu(bias.defined() ? x + bias : x, 1);
  return reference::dropout(gated, dropout);
}

at::Tensor weight_norm(const at::Tensor& v, const at::Tensor& gain) {
  return v * (gain.unsqueeze(1) / v.norm(2, 1, true));
}

at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options) {
  const auto all = for_each_pair(q, keys, values, options, [](const Pair& pair) {
    const double factor = std::sqrt(static_cast<double>(pair.keys.size(0)));
    return at::matmul(pair.weights(), pair.values) * factor;
  });
  return all.empty() ? at::zeros_like(q) : at::cat(all);
}

at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options) {
  const at::NoGradGuard no_grad;
  const auto all = for_each_pair(q, keys, {}, options,
                                 [](const Pair& pair) { return pair.weights().flatten(); });
  return all.empty() ? at::empty({0}, q.options()) : at::cat(all);
}

}  // namespace stretto::kernels::reference
