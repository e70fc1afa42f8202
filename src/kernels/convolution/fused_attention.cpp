#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <vector>

#include "kernels/convolution/fused.h"
#include "kernels/fused_common.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

/// Pairs of sequences for the loops of ordinary attention: one head, scores as they are.
struct Pairs {
  at::Tensor q, keys, values, query_offsets, key_offsets;
  Compute compute = Compute::kFp32;

  int64_t count() const { return query_offsets.size(0) - 1; }
  int64_t query_row(int64_t i) const { return query_offsets.const_data_ptr<int32_t>()[i]; }
  int64_t key_row(int64_t i) const { return key_offsets.const_data_ptr<int32_t>()[i]; }
  int64_t num_queries(int64_t i) const { return query_row(i + 1) - query_row(i); }
  float factor(int64_t i) const {
    return std::sqrt(static_cast<float>(key_row(i + 1) - key_row(i)));
  }

  cpu::AttentionItem at(int64_t i, float* log_sums) const {
    const int64_t width = q.size(1), first_key = key_row(i) * width;
    return {.q = q.const_data_ptr<float>() + query_row(i) * width,
            .k = keys.const_data_ptr<float>() + first_key,
            .v = values.const_data_ptr<float>() + first_key,
            .q_stride = width,
            .kv_stride = width,
            .queries = num_queries(i),
            .keys = key_row(i + 1) - key_row(i),
            .width = width,
            .scale = 1,
            .causal = false,
            .first_element = 0,
            .drop = {0, nullptr, 0, 1},
            .log_sum = log_sums == nullptr ? nullptr : log_sums + query_row(i),
            .compute = compute};
  }
};

at::Tensor host_offsets(const Offsets& offsets) {
  return offsets.values.to(at::kInt).contiguous();
}

/// Rows of x times the factor of their sequence.
at::Tensor times_factor(const Pairs& pairs, const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  const int64_t width = x.size(1);
  at::parallel_for(0, pairs.count(), kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float factor = pairs.factor(i);
      const int64_t stop = pairs.query_row(i + 1) * width;
      for (int64_t j = pairs.query_row(i) * width; j < stop; ++j) to[j] = from[j] * factor;
    }
  });
  return out;
}

struct MultiStepAttentionNode : torch::autograd::Function<MultiStepAttentionNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& keys,
                            const at::Tensor& values, const MultiStepAttention& options) {
    const Compute compute = ComputeScope::current();
    const Pairs pairs{rounded(q.contiguous(), compute),      rounded(keys.contiguous(), compute),
                      rounded(values.contiguous(), compute), host_offsets(options.query_offsets),
                      host_offsets(options.key_offsets),     compute};
    const int64_t width = q.size(1);
    at::Tensor context = at::zeros(q.sizes(), q.options());
    at::Tensor log_sums = at::empty({q.size(0)}, q.options());
    float *to = context.data_ptr<float>(), *sums = log_sums.data_ptr<float>();
    at::parallel_for(0, pairs.count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        cpu::table().attention(pairs.at(i, sums), to + pairs.query_row(i) * width, width);
    });
    round_(context, compute);
    keep(ctx, compute);
    ctx->save_for_backward({pairs.q, pairs.keys, pairs.values, pairs.query_offsets,
                            pairs.key_offsets, context, log_sums});
    return times_factor(pairs, context);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Pairs pairs{saved[0], saved[1], saved[2], saved[3], saved[4], kept_compute(ctx)};
    const at::Tensor &context = saved[5], &log_sums = saved[6];
    const at::Tensor slope = rounded(times_factor(pairs, grads[0].contiguous()), pairs.compute);
    at::Tensor dq = at::zeros_like(pairs.q), dkeys = at::zeros_like(pairs.keys);
    at::Tensor dvalues = at::zeros_like(pairs.values);
    const int64_t width = context.size(1);
    float *to_q = dq.data_ptr<float>(), *to_keys = dkeys.data_ptr<float>();
    float* to_values = dvalues.data_ptr<float>();
    const float *out = context.const_data_ptr<float>(), *dout = slope.const_data_ptr<float>();
    float* sums = const_cast<float*>(log_sums.const_data_ptr<float>());  // only read from here
    at::parallel_for(0, pairs.count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = pairs.query_row(i) * width, key = pairs.key_row(i) * width;
        cpu::table().attention_backward(pairs.at(i, sums), {.out = out + row,
                                                            .out_grad = dout + row,
                                                            .out_stride = width,
                                                            .dq = to_q + row,
                                                            .dk = to_keys + key,
                                                            .dv = to_values + key});
      }
    });
    for (at::Tensor* slopes : {&dq, &dkeys, &dvalues}) round_(*slopes, pairs.compute);
    return {dq, dkeys, dvalues, {}};
  }
};

}  // namespace

at::Tensor multi_step_attention(const at::Tensor& q, const at::Tensor& keys,
                                const at::Tensor& values, const MultiStepAttention& options) {
  return MultiStepAttentionNode::apply(q, keys, values, options);
}

at::Tensor multi_step_attention_weights(const at::Tensor& q, const at::Tensor& keys,
                                        const MultiStepAttention& options) {
  const Compute compute = ComputeScope::current();
  const at::Tensor rows = rounded(keys.contiguous(), compute);
  const Pairs pairs{
      rounded(q.contiguous(), compute),  rows,   rows, host_offsets(options.query_offsets),
      host_offsets(options.key_offsets), compute};
  std::vector<int64_t> begins{0};
  for (int64_t i = 0; i < pairs.count(); ++i) {
    const cpu::AttentionItem item = pairs.at(i, nullptr);
    begins.push_back(begins.back() + item.queries * item.keys);
  }
  at::Tensor out = at::zeros({begins.back()}, q.options());
  float* to = out.data_ptr<float>();
  at::parallel_for(0, pairs.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::table().attention_weights(pairs.at(i, nullptr), 1, to + begins[static_cast<size_t>(i)]);
  });
  return out;
}

}  // namespace stretto::kernels::fused
