#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/fused.h"
#include "kernels/fused_common.h"
#include "kernels/reference.h"
#include "kernels/rounding.h"

namespace stretto::kernels::fused {
namespace {

/// Which heads there are, and what each sees.
struct Heads {
  int64_t queries, keys;  // their numbers; the second divides the first
  bool causal;
  int64_t bias_zero;  // column of distance 0 in the table of the bias
  AttentionLimits limits = {};

  int64_t sharers() const { return queries / keys; }  // heads of queries for one of keys
};

/// What both directions of attention need: dense rows and offsets on the host. An item is a
/// sequence and a head of keys.
struct Problem {
  at::Tensor q, kv;  // q may be the same tensor as kv (merged self-attention)
  int64_t k_column, v_column, width;
  Heads heads;
  at::Tensor query_offsets, key_offsets, row_keys, bias;
  cpu::Drop drop;
  Compute compute = Compute::kFp32;  // of the weights; q and kv are already rounded

  int64_t sequences() const { return query_offsets.size(0) - 1; }
  int64_t items() const { return sequences() * heads.keys; }
  int64_t sequence(int64_t item) const { return item / heads.keys; }
  int64_t query_row(int64_t item) const {
    return query_offsets.const_data_ptr<int32_t>()[sequence(item)];
  }
  int64_t key_row(int64_t item) const {
    return key_offsets.const_data_ptr<int32_t>()[sequence(item)];
  }
  int64_t first_head(int64_t item) const { return item % heads.keys * heads.sharers(); }
  int64_t query_column(int64_t item) const { return first_head(item) * width; }
  int64_t key_column(int64_t item) const { return item % heads.keys * width; }

  cpu::AttentionItem at(int64_t item, float* log_sums) const {
    const int32_t* rows = query_offsets.const_data_ptr<int32_t>();
    const int32_t* cols = key_offsets.const_data_ptr<int32_t>();
    const int64_t i = sequence(item), head = first_head(item);
    const float* keys = kv.const_data_ptr<float>() + cols[i] * kv.size(1) + key_column(item);
    cpu::Drop own = drop;
    if (own.row_keys != nullptr) own.row_keys += rows[i];
    cpu::AttentionItem one{
        .q = q.const_data_ptr<float>() + rows[i] * q.size(1) + head * width,
        .k = keys + k_column,
        .v = keys + v_column,
        .q_stride = q.size(1),
        .kv_stride = kv.size(1),
        .queries = rows[i + 1] - rows[i],
        .keys = cols[i + 1] - cols[i],
        .width = width,
        .scale = 1.0f / std::sqrt(static_cast<float>(width)),
        .causal = heads.causal,
        .first_element = head * cpu::kHeadStride,
        .drop = own,
        .log_sum = log_sums == nullptr ? nullptr : log_sums + head * q.size(0) + rows[i],
        .compute = compute,
        .heads = heads.sharers(),
        .log_sum_stride = q.size(0)};
    if (bias.defined()) {
      one.bias = bias.const_data_ptr<float>() + bias_place(item);
      one.bias_stride = distances();
    }
    if (bias_is_of_queries()) {
      one.bias_row_stride = heads.queries * distances();
      one.bias_before = heads.bias_zero;
      one.bias_behind = distances() - 1 - heads.bias_zero;
    }
    one.window = heads.limits.window;
    one.softcap = static_cast<float>(heads.limits.softcap);
    return one;
  }

  bool bias_is_of_queries() const { return bias.defined() && bias.dim() == 3; }
  int64_t distances() const { return bias.size(-1); }
  /// The place of distance 0 for an item's first query and head, in the bias and in its gradient.
  int64_t bias_place(int64_t item) const {
    const int64_t row = bias_is_of_queries() ? query_row(item) * heads.queries : 0;
    return (row + first_head(item)) * distances() + heads.bias_zero;
  }
};

/// `bias` may be undefined.
Problem problem_of(const at::Tensor& q, const at::Tensor& kv, bool merged,
                   const at::Tensor& query_offsets, const at::Tensor& key_offsets,
                   const Heads& heads, const at::Tensor& bias, const Dropout& dropout) {
  const int64_t width = q.size(1) / (heads.queries + (merged ? 2 * heads.keys : 0));
  const int64_t first = merged ? heads.queries * width : 0;
  Problem problem{q,
                  kv,
                  first,
                  first + heads.keys * width,
                  width,
                  heads,
                  query_offsets.to(at::kInt).contiguous(),
                  key_offsets.to(at::kInt).contiguous(),
                  keys_of(dropout),
                  bias.defined() ? bias.contiguous() : at::Tensor(),
                  {}};
  problem.drop = drop_of(dropout, problem.row_keys);
  return problem;
}

/// Memory for rows of sequences, of which each writes its own: zeroes where a row belongs to none.
at::Tensor rows_to_write(const at::Tensor& like, int64_t columns, const at::Tensor& offsets) {
  const int32_t* bounds = offsets.const_data_ptr<int32_t>();
  const int64_t last = offsets.size(0) - 1, rows = like.size(0);
  const bool all_belong = last >= 0 && bounds[0] == 0 && bounds[last] == rows;
  return all_belong ? at::empty({rows, columns}, like.options())
                    : at::zeros({rows, columns}, like.options());
}

/// The gradient of a distance is a sum over sequences: each has a line of its own to add to, and
/// the lines are added up in the order of sequences, whatever the number of threads. A bias of
/// queries has numbers that no two sequences share: its gradient is written as it is.
class BiasSlopes {
 public:
  explicit BiasSlopes(const Problem& problem)
      : problem_(problem),
        room_(problem.bias_is_of_queries() ? problem.distances()
                                           : problem.q.size(0) + problem.kv.size(0)),
        lines_(problem.bias_is_of_queries()
                   ? at::zeros_like(problem.bias)
                   : at::zeros({problem.heads.queries, room_}, problem.q.options())) {}

  /// Distance 0 in the line of an item's first head; stride() leads to the next head's.
  float* line(int64_t item) {
    float* first = lines_.data_ptr<float>();
    if (problem_.bias_is_of_queries()) return first + problem_.bias_place(item);
    return first + problem_.first_head(item) * room_ + zero(problem_.sequence(item));
  }
  int64_t stride() const { return room_; }

  /// As the table.
  at::Tensor sum() const {
    if (problem_.bias_is_of_queries()) return lines_;
    at::Tensor all = at::zeros_like(problem_.bias);
    const float* from = lines_.const_data_ptr<float>();
    float* to = all.data_ptr<float>() + problem_.heads.bias_zero;
    at::parallel_for(0, all.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < problem_.sequences(); ++i) {
          const float* line = from + head * room_ + zero(i);
          float* column = to + head * all.size(1);
          const int64_t last = problem_.heads.causal ? 0 : length(problem_.key_offsets, i) - 1;
          for (int64_t d = 1 - length(problem_.query_offsets, i); d <= last; ++d)
            column[d] += line[d];
        }
    });
    return all;
  }

 private:
  static int64_t length(const at::Tensor& offsets, int64_t i) {
    const int32_t* bounds = offsets.const_data_ptr<int32_t>();
    return bounds[i + 1] - bounds[i];
  }
  /// A sequence has fewer distances than queries and keys together.
  int64_t zero(int64_t i) const {
    const int64_t queries = problem_.query_offsets.const_data_ptr<int32_t>()[i + 1];
    return queries + problem_.key_offsets.const_data_ptr<int32_t>()[i] -
           (length(problem_.query_offsets, i) > 0 ? 1 : 0);
  }

  const Problem& problem_;
  int64_t room_;
  at::Tensor lines_;  // [H, queries + keys of all sequences], or as the bias of queries
};

struct AttentionNode : torch::autograd::Function<AttentionNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q,
                            const std::optional<at::Tensor>& kv, const at::Tensor& query_offsets,
                            const at::Tensor& key_offsets, const std::optional<at::Tensor>& bias,
                            const Heads& heads, const Dropout& dropout) {
    const bool merged = !kv.has_value();
    const Compute compute = ComputeScope::current();
    const at::Tensor queries = rounded(q.contiguous(), compute);
    const at::Tensor keys = merged ? queries : rounded(kv->contiguous(), compute);
    Problem problem = problem_of(queries, keys, merged, query_offsets, key_offsets, heads,
                                 bias.value_or(at::Tensor()), dropout);
    problem.compute = compute;
    const int64_t d_model = heads.queries * problem.width;
    at::Tensor out = rows_to_write(queries, d_model, problem.query_offsets);
    at::Tensor log_sums = at::empty({heads.queries, q.size(0)}, q.options());
    float *to = out.data_ptr<float>(), *sums = log_sums.data_ptr<float>();
    at::parallel_for(0, problem.items(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        cpu::table().attention(problem.at(i, sums),
                               to + problem.query_row(i) * d_model + problem.query_column(i),
                               d_model);
    });
    round_(out, compute);
    keep(ctx, dropout);
    keep(ctx, compute);
    keep_heads(ctx, heads);
    ctx->saved_data["merged"] = merged;
    ctx->saved_data["bias_slopes"] = bias && bias->requires_grad();
    ctx->save_for_backward(
        {queries, keys, out, log_sums, query_offsets, key_offsets, problem.bias});
    return out;
  }

  static void keep_heads(AutogradContext* ctx, const Heads& heads) {
    ctx->saved_data["heads"] = heads.queries;
    ctx->saved_data["kv_heads"] = heads.keys;
    ctx->saved_data["causal"] = heads.causal;
    ctx->saved_data["bias_zero"] = heads.bias_zero;
    ctx->saved_data["window"] = heads.limits.window;
    ctx->saved_data["softcap"] = heads.limits.softcap;
  }
  static Heads kept_heads(AutogradContext* ctx) {
    return {.queries = ctx->saved_data["heads"].toInt(),
            .keys = ctx->saved_data["kv_heads"].toInt(),
            .causal = ctx->saved_data["causal"].toBool(),
            .bias_zero = ctx->saved_data["bias_zero"].toInt(),
            .limits = {.window = ctx->saved_data["window"].toInt(),
                       .softcap = ctx->saved_data["softcap"].toDouble()}};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const Compute compute = kept_compute(ctx);
    const at::Tensor &q = saved[0], &kv = saved[1], &out = saved[2];
    const at::Tensor dout = rounded(grads[0].contiguous(), compute);
    const bool merged = ctx->saved_data["merged"].toBool();
    Problem problem =
        problem_of(q, kv, merged, saved[4], saved[5], kept_heads(ctx), saved[6], kept(ctx));
    problem.compute = compute;
    at::Tensor dq = rows_to_write(q, q.size(1), problem.query_offsets);
    at::Tensor dkv = merged ? dq : rows_to_write(kv, kv.size(1), problem.key_offsets);
    std::optional<BiasSlopes> bias_slopes;
    if (ctx->saved_data["bias_slopes"].toBool()) bias_slopes.emplace(problem);
    float *to_q = dq.data_ptr<float>(), *to_kv = dkv.data_ptr<float>();
    const float *value = out.const_data_ptr<float>(), *slope = dout.const_data_ptr<float>();
    float* sums = const_cast<float*>(saved[3].const_data_ptr<float>());  // only read from here
    const int64_t width = out.size(1);
    at::parallel_for(0, problem.items(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = problem.query_row(i), column = problem.query_column(i);
        float* keys = to_kv + problem.key_row(i) * kv.size(1) + problem.key_column(i);
        cpu::AttentionGradient gradient{.out = value + row * width + column,
                                        .out_grad = slope + row * width + column,
                                        .out_stride = width,
                                        .dq = to_q + row * q.size(1) + column,
                                        .dk = keys + problem.k_column,
                                        .dv = keys + problem.v_column};
        if (bias_slopes) {
          gradient.dbias = bias_slopes->line(i);
          gradient.dbias_stride = bias_slopes->stride();
        }
        cpu::table().attention_backward(problem.at(i, sums), gradient);
      }
    });
    round_(dq, compute);
    if (!merged) round_(dkv, compute);
    const at::Tensor dbias = bias_slopes ? bias_slopes->sum() : at::Tensor();
    return {dq, merged ? at::Tensor() : dkv, {}, {}, dbias, {}, {}};
  }
};

/// What a bias adds to steps 0 .. t of each lane. A table for all lanes is read where it lies.
class StepBias {
 public:
  StepBias(const DistanceBias& bias, int64_t t) : of_lanes_(bias.is_of_queries()) {
    if (!bias.active()) return;
    numbers_ = (of_lanes_ ? reference::bias_of_step(bias, t) : bias.table).contiguous();
    first_ = numbers_.const_data_ptr<float>() + (of_lanes_ ? 0 : bias.zero - t);
  }
  /// The bias of the lane's first head; null without a bias.
  const float* of_lane(int64_t lane) const {
    return of_lanes_ ? first_ + lane * numbers_.size(1) * stride() : first_;
  }
  int64_t stride() const { return first_ == nullptr ? 0 : numbers_.size(-1); }

 private:
  bool of_lanes_;
  at::Tensor numbers_;
  const float* first_ = nullptr;
};

/// How many parts the heads of a lane are cut into: with fewer lanes than threads, several threads
/// share a lane whose history is long enough.
/// @param numbers  in the keys of one lane
int64_t parts_of_lane(int64_t lanes, int64_t kv_heads, int64_t numbers) {
  constexpr int64_t kFewest = int64_t{1} << 14;
  if (lanes == 0 || numbers < kFewest || at::in_parallel_region()) return 1;
  return std::clamp<int64_t>(at::get_num_threads() / lanes, 1, kv_heads);
}

}  // namespace

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options) {
  const at::Tensor& offsets = options.offsets.values;
  const DistanceBias& bias = options.bias;
  return AttentionNode::apply(
      qkv, std::optional<at::Tensor>(), offsets, offsets,
      bias.active() ? std::optional(bias.table) : std::nullopt,
      Heads{options.num_heads, options.kv_heads(), options.causal, bias.zero, options.limits},
      options.dropout);
}

at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options) {
  return AttentionNode::apply(q, std::optional<at::Tensor>(kv), options.query_offsets.values,
                              options.key_offsets.values, std::optional<at::Tensor>(),
                              Heads{options.num_heads, options.kv_heads(), false, 0},
                              options.dropout);
}

at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options) {
  const Compute compute = ComputeScope::current();
  const at::Tensor queries = rounded(q.contiguous(), compute);
  const at::Tensor keys = rounded(kv.contiguous(), compute);
  const int64_t heads = options.kv_heads();
  const Problem problem =
      problem_of(queries, keys, false, options.query_offsets.values, options.key_offsets.values,
                 {options.num_heads, heads, false, 0}, at::Tensor(), Dropout{});
  std::vector<int64_t> begins{0};
  for (int64_t item = 0; item < problem.items(); item += heads) {
    const cpu::AttentionItem sequence = problem.at(item, nullptr);
    begins.push_back(begins.back() + sequence.queries * sequence.keys);
  }
  at::Tensor out = at::zeros({begins.back()}, q.options());
  float* to = out.data_ptr<float>();
  const float share = 1.0f / static_cast<float>(options.num_heads);
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
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias, const at::Tensor& first,
                                 double softcap) {
  const int64_t lanes = q.size(0), width = q.size(1);
  const Compute compute = ComputeScope::current();
  k_cache.select(0, t)
      .slice(0, 0, lanes)
      .copy_(is_half(compute) ? rounded(k_new.to(at::kFloat), compute) : k_new);
  v_cache.select(0, t)
      .slice(0, 0, lanes)
      .copy_(is_half(compute) ? rounded(v_new.to(at::kFloat), compute) : v_new);
  const at::Tensor queries = rounded(q.contiguous(), compute), table = lineage.contiguous();
  const StepBias biases(bias, t);
  const int64_t head_width = width / num_heads;
  at::Tensor out = at::empty_like(queries);
  const int32_t* slots = table.const_data_ptr<int32_t>();
  const float *from = queries.const_data_ptr<float>(), *keys = k_cache.const_data_ptr<float>();
  const float* values = v_cache.const_data_ptr<float>();
  const int32_t* begins = first.defined() ? first.const_data_ptr<int32_t>() : nullptr;
  const int64_t row = k_cache.size(2), step = k_cache.size(1) * row;
  const int64_t kv_heads = row / head_width, sharers = num_heads / kv_heads;
  const int64_t parts = parts_of_lane(lanes, kv_heads, (t + 1) * row);
  float* to = out.data_ptr<float>();
  at::parallel_for(0, lanes * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t lane = i / parts, part = i % parts;
      const int64_t kv_head = part * kv_heads / parts;
      const int64_t kv_count = (part + 1) * kv_heads / parts - kv_head;
      const int64_t head = kv_head * sharers, place = lane * width + head * head_width;
      // A history that begins later is the same one with another step 0.
      const int64_t before = begins == nullptr ? 0 : begins[lane];
      const float* bias_of_lane = biases.of_lane(lane);
      const int64_t column = before * step + kv_head * head_width;
      cpu::table().decode(
          {.q = from + place,
           .k_cache = keys + column,
           .v_cache = values + column,
           .slots = slots + lane * table.size(1) + before,
           .lane = lane,
           .lanes = k_cache.size(1),
           .t = t - before,
           .heads = kv_count * sharers,
           .kv_heads = kv_count,
           .width = head_width,
           .kv_row = row,
           .compute = compute,
           .bias =
               bias_of_lane == nullptr ? nullptr : bias_of_lane + before + head * biases.stride(),
           .bias_stride = biases.stride(),
           .softcap = static_cast<float>(softcap)},
          to + place);
    }
  });
  round_(out, compute);
  return out;
}

}  // namespace stretto::kernels::fused
