#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <optional>
#include <vector>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

constexpr int64_t kHeadStride = int64_t{1} << 20;  // dropout elements reserved for one head

/// What both directions of attention need: dense rows and offsets on the host.
struct Problem {
  at::Tensor q, kv;  // q may be the same tensor as kv (merged self-attention)
  int64_t k_column, v_column, width, heads;
  bool causal;
  at::Tensor query_offsets, key_offsets, row_keys;
  cpu::Drop drop;
  Compute compute = Compute::kFp32;  // of the weights; q and kv are already rounded

  int64_t items() const { return (query_offsets.size(0) - 1) * heads; }
  int64_t sequence(int64_t item) const { return item / heads; }
  int64_t query_row(int64_t item) const {
    return query_offsets.const_data_ptr<int32_t>()[sequence(item)];
  }
  int64_t key_row(int64_t item) const {
    return key_offsets.const_data_ptr<int32_t>()[sequence(item)];
  }
  int64_t column(int64_t item) const { return item % heads * width; }

  cpu::AttentionItem at(int64_t item, float* log_sums) const {
    const int32_t* rows = query_offsets.const_data_ptr<int32_t>();
    const int32_t* cols = key_offsets.const_data_ptr<int32_t>();
    const int64_t i = sequence(item), head = item % heads;
    const float* keys = kv.const_data_ptr<float>() + cols[i] * kv.size(1) + head * width;
    cpu::Drop own = drop;
    if (own.row_keys != nullptr) own.row_keys += rows[i];
    return {.q = q.const_data_ptr<float>() + rows[i] * q.size(1) + head * width,
            .k = keys + k_column,
            .v = keys + v_column,
            .q_stride = q.size(1),
            .kv_stride = kv.size(1),
            .queries = rows[i + 1] - rows[i],
            .keys = cols[i + 1] - cols[i],
            .width = width,
            .scale = 1.0f / std::sqrt(static_cast<float>(width)),
            .causal = causal,
            .first_element = head * kHeadStride,
            .drop = own,
            .log_sum = log_sums == nullptr ? nullptr : log_sums + head * q.size(0) + rows[i],
            .compute = compute};
  }
};

Problem problem_of(const at::Tensor& q, const at::Tensor& kv, int64_t d_model, bool merged,
                   const at::Tensor& query_offsets, const at::Tensor& key_offsets, int64_t heads,
                   bool causal, const Dropout& dropout) {
  const int64_t first = merged ? d_model : 0;
  Problem problem{q,
                  kv,
                  first,
                  first + d_model,
                  d_model / heads,
                  heads,
                  causal,
                  query_offsets.to(at::kInt).contiguous(),
                  key_offsets.to(at::kInt).contiguous(),
                  keys_of(dropout),
                  {}};
  problem.drop = drop_of(dropout, problem.row_keys);
  return problem;
}

struct AttentionNode : torch::autograd::Function<AttentionNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q,
                            const std::optional<at::Tensor>& kv, const at::Tensor& query_offsets,
                            const at::Tensor& key_offsets, int64_t heads, bool causal,
                            const Dropout& dropout) {
    const bool merged = !kv.has_value();
    const Compute compute = ComputeScope::current();
    const at::Tensor queries = rounded(q.contiguous(), compute);
    const at::Tensor keys = merged ? queries : rounded(kv->contiguous(), compute);
    const int64_t d_model = merged ? q.size(1) / 3 : q.size(1);
    Problem problem = problem_of(queries, keys, d_model, merged, query_offsets, key_offsets, heads,
                                 causal, dropout);
    problem.compute = compute;
    at::Tensor out = at::zeros({q.size(0), d_model}, q.options());
    at::Tensor log_sums = at::empty({heads, q.size(0)}, q.options());
    float *to = out.data_ptr<float>(), *sums = log_sums.data_ptr<float>();
    at::parallel_for(0, problem.items(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        cpu::table().attention(problem.at(i, sums),
                               to + problem.query_row(i) * d_model + problem.column(i), d_model);
    });
    round_(out, compute);
    keep(ctx, dropout);
    keep(ctx, compute);
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["causal"] = causal;
    ctx->saved_data["merged"] = merged;
    ctx->save_for_backward({queries, keys, out, log_sums, query_offsets, key_offsets});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Compute compute = kept_compute(ctx);
    const at::Tensor &q = saved[0], &kv = saved[1], &out = saved[2];
    const at::Tensor dout = rounded(grads[0].contiguous(), compute);
    const bool merged = ctx->saved_data["merged"].toBool();
    Problem problem =
        problem_of(q, kv, out.size(1), merged, saved[4], saved[5], ctx->saved_data["heads"].toInt(),
                   ctx->saved_data["causal"].toBool(), kept(ctx));
    problem.compute = compute;
    at::Tensor dq = at::zeros_like(q), dkv = merged ? dq : at::zeros_like(kv);
    float *to_q = dq.data_ptr<float>(), *to_kv = dkv.data_ptr<float>();
    const float *value = out.const_data_ptr<float>(), *slope = dout.const_data_ptr<float>();
    float* sums = const_cast<float*>(saved[3].const_data_ptr<float>());  // only read from here
    const int64_t width = out.size(1);
    at::parallel_for(0, problem.items(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = problem.query_row(i), column = problem.column(i);
        float* keys = to_kv + problem.key_row(i) * kv.size(1) + column;
        cpu::table().attention_backward(problem.at(i, sums),
                                        {.out = value + row * width + column,
                                         .out_grad = slope + row * width + column,
                                         .out_stride = width,
                                         .dq = to_q + row * q.size(1) + column,
                                         .dk = keys + problem.k_column,
                                         .dv = keys + problem.v_column});
      }
    });
    round_(dq, compute);
    if (!merged) round_(dkv, compute);
    return {dq, merged ? at::Tensor() : dkv, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options) {
  const at::Tensor& offsets = options.offsets.values;
  return AttentionNode::apply(qkv, std::optional<at::Tensor>(), offsets, offsets, options.num_heads,
                              options.causal, options.dropout);
}

at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options) {
  return AttentionNode::apply(q, std::optional<at::Tensor>(kv), options.query_offsets.values,
                              options.key_offsets.values, options.num_heads, false,
                              options.dropout);
}

at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options) {
  const Compute compute = ComputeScope::current();
  const at::Tensor queries = rounded(q.contiguous(), compute);
  const at::Tensor keys = rounded(kv.contiguous(), compute);
  const int64_t heads = options.num_heads;
  const Problem problem = problem_of(queries, keys, q.size(1), false, options.query_offsets.values,
                                     options.key_offsets.values, heads, false, Dropout{});
  std::vector<int64_t> begins{0};
  for (int64_t item = 0; item < problem.items(); item += heads) {
    const cpu::AttentionItem sequence = problem.at(item, nullptr);
    begins.push_back(begins.back() + sequence.queries * sequence.keys);
  }
  at::Tensor out = at::zeros({begins.back()}, q.options());
  float* to = out.data_ptr<float>();
  const float share = 1.0f / static_cast<float>(heads);
  at::parallel_for(0, problem.items() / heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t head = 0; head < heads; ++head)
        cpu::table().attention_weights(problem.at(i * heads + head, nullptr), share,
                                       to + begins[static_cast<size_t>(i)]);
  });
  return out;
}

at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads) {
  const int64_t lanes = q.size(0), width = q.size(1);
  const Compute compute = ComputeScope::current();
  k_cache.select(0, t)
      .slice(0, 0, lanes)
      .copy_(is_half(compute) ? rounded(k_new.to(at::kFloat), compute) : k_new);
  v_cache.select(0, t)
      .slice(0, 0, lanes)
      .copy_(is_half(compute) ? rounded(v_new.to(at::kFloat), compute) : v_new);
  const at::Tensor queries = rounded(q.contiguous(), compute), table = lineage.contiguous();
  at::Tensor out = at::empty_like(queries);
  const int32_t* slots = table.const_data_ptr<int32_t>();
  const float *from = queries.const_data_ptr<float>(), *keys = k_cache.const_data_ptr<float>();
  const float* values = v_cache.const_data_ptr<float>();
  float* to = out.data_ptr<float>();
  at::parallel_for(0, lanes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane)
      cpu::table().decode({.q = from + lane * width,
                           .k_cache = keys,
                           .v_cache = values,
                           .slots = slots + lane * table.size(1),
                           .lane = lane,
                           .lanes = k_cache.size(1),
                           .t = t,
                           .heads = num_heads,
                           .width = width / num_heads,
                           .compute = compute},
                          to + lane * width);
  });
  round_(out, compute);
  return out;
}

}  // namespace stretto::kernels::fused
