#include "kernels/attention/placed.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "kernels/dispatch.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

/// The heads of a step, and the numbers of a row of keys.
struct PlacedHeads {
  int64_t queries, keys, width;

  int64_t row() const { return keys * width; }
  int64_t sharers() const { return queries / keys; }
};

PlacedHeads placed_heads(const at::Tensor& q, int64_t kv_width, int64_t num_heads,
                         const char* name) {
  check_rows(q, name);
  check_heads(q.size(1), num_heads, name);
  const int64_t width = q.size(1) / num_heads, keys = kv_width / width;
  TORCH_CHECK(keys > 0 && keys * width == kv_width && num_heads % keys == 0, "[kernels] ", name,
              ": keys of ", kv_width, " numbers for ", num_heads, " heads of ", width);
  return {num_heads, keys, width};
}

/// The first step that the present one sees.
int64_t first_seen(int64_t t, const AttentionLimits& limits) {
  return limits.window > 0 ? std::max<int64_t>(t - limits.window + 1, 0) : 0;
}

void check_histories(const at::Tensor& q, const at::Tensor& keys, PlacedHistories histories,
                     const DistanceBias& bias) {
  TORCH_CHECK(std::ssize(histories) == q.size(0),
              "[kernels] placed_self_attention: ", histories.size(), " histories for ", q.size(0),
              " lanes");
  TORCH_CHECK(!bias.is_of_queries(), "[kernels] placed_self_attention: no bias of queries");
  for (const std::vector<int32_t>& places : histories) {
    TORCH_CHECK(!places.empty() && places.back() >= 0 && places.back() < keys.size(0),
                "[kernels] placed_self_attention: a present step outside of ", keys.sizes());
    TORCH_CHECK(!bias.active() || std::ssize(places) - 1 <= bias.zero,
                "[kernels] placed_self_attention: a history of ", places.size(),
                " steps is longer than the bias");
  }
}

void write_steps(const at::Tensor& rows, PlacedHistories histories, at::Tensor& kept) {
  const at::Tensor dense = rounded(rows.to(at::kFloat).contiguous(), ComputeScope::current());
  const float* from = dense.const_data_ptr<float>();
  float* to = kept.data_ptr<float>();
  const int64_t width = kept.size(1);
  for (const std::vector<int32_t>& places : histories) {
    std::copy_n(from, width, to + places.back() * width);
    from += width;
  }
}

/// How many parts the heads of a lane are cut into, as in decode_self_attention(): with fewer lanes
/// than threads, several threads share a lane whose history is long enough.
int64_t parts_of_history(PlacedHistories histories, const PlacedHeads& heads) {
  constexpr int64_t kFewest = int64_t{1} << 14;  // numbers in the keys of a lane
  if (histories.empty() || at::in_parallel_region()) return 1;
  size_t longest = 0;
  for (const std::vector<int32_t>& places : histories) longest = std::max(longest, places.size());
  if (static_cast<int64_t>(longest) * heads.row() < kFewest) return 1;
  return std::clamp<int64_t>(at::get_num_threads() / std::ssize(histories), 1, heads.keys);
}

at::Tensor fused_steps(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                       PlacedHistories histories, const PlacedHeads& heads,
                       const DistanceBias& bias, const AttentionLimits& limits) {
  const Compute compute = ComputeScope::current();
  const at::Tensor queries = rounded(q.contiguous(), compute);
  const at::Tensor table = bias.active() ? bias.table.contiguous() : at::Tensor();
  at::Tensor out = at::empty_like(queries);
  const int64_t width = q.size(1), parts = parts_of_history(histories, heads);
  const float *from = queries.const_data_ptr<float>(), *of_keys = keys.const_data_ptr<float>();
  const float* of_values = values.const_data_ptr<float>();
  const float* of_bias = table.defined() ? table.const_data_ptr<float>() + bias.zero : nullptr;
  const int64_t bias_stride = table.defined() ? table.size(1) : 0;
  float* to = out.data_ptr<float>();
  at::parallel_for(0, q.size(0) * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t lane = i / parts, kv_head = i % parts * heads.keys / parts;
      const int64_t kv_count = (i % parts + 1) * heads.keys / parts - kv_head;
      const int64_t head = kv_head * heads.sharers();
      const int64_t place = lane * width + head * heads.width, column = kv_head * heads.width;
      const std::vector<int32_t>& places = histories[static_cast<size_t>(lane)];
      const int64_t t = std::ssize(places) - 1, before = first_seen(t, limits);
      const float* own_bias =
          of_bias == nullptr ? nullptr : of_bias - t + before + head * bias_stride;
      // With no distance between steps, a slot of the table is a row of the buffer.
      cpu::table().decode({.q = from + place,
                           .k_cache = of_keys + column,
                           .v_cache = of_values + column,
                           .slots = places.data() + before,
                           .lane = places.back(),
                           .lanes = 0,
                           .t = t - before,
                           .heads = kv_count * heads.sharers(),
                           .kv_heads = kv_count,
                           .width = heads.width,
                           .kv_row = heads.row(),
                           .compute = compute,
                           .bias = own_bias,
                           .bias_stride = bias_stride,
                           .softcap = static_cast<float>(limits.softcap)},
                          to + place);
    }
  });
  round_(out, compute);
  return out;
}

/// [n, keys * width] -> [heads, n, width]
at::Tensor by_heads(const at::Tensor& rows, const PlacedHeads& heads) {
  return rows.reshape({rows.size(0), heads.keys, heads.width})
      .transpose(0, 1)
      .repeat_interleave(heads.sharers(), 0);
}

/// One query [D] over rows -> [D].
at::Tensor plain_attention(const at::Tensor& query, const at::Tensor& keys,
                           const at::Tensor& values, const PlacedHeads& heads,
                           const at::Tensor& bias, double softcap) {
  at::Tensor scores = at::matmul(query.view({heads.queries, 1, heads.width}),
                                 by_heads(keys, heads).transpose(1, 2)) /
                      std::sqrt(static_cast<double>(heads.width));
  scores = softcapped(scores, softcap);
  if (bias.defined()) scores = scores + bias.to(scores.scalar_type()).unsqueeze(1);
  return at::matmul(at::softmax(scores, -1), by_heads(values, heads)).reshape({-1});
}

at::Tensor plain_steps(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                       PlacedHistories histories, const PlacedHeads& heads,
                       const DistanceBias& bias, const AttentionLimits& limits) {
  std::vector<at::Tensor> out;
  for (int64_t lane = 0; lane < q.size(0); ++lane) {
    const std::vector<int32_t>& places = histories[static_cast<size_t>(lane)];
    const int64_t t = std::ssize(places) - 1, before = first_seen(t, limits);
    const std::vector<int64_t> seen(places.begin() + before, places.end());
    const at::Tensor index = at::tensor(seen, at::kLong).to(keys.device());
    const at::Tensor distances =
        bias.active() ? bias.table.slice(1, bias.zero - t + before, bias.zero + 1) : at::Tensor();
    out.push_back(plain_attention(q[lane].contiguous(), keys.index_select(0, index),
                                  values.index_select(0, index), heads, distances, limits.softcap));
  }
  return at::stack(out);
}

void check_memories(const at::Tensor& q, const at::Tensor& kv, const PlacedMemories& memories) {
  const size_t count = memories.begins.size();
  TORCH_CHECK(memories.lengths.size() == count && memories.lanes.size() == count,
              "[kernels] placed_cross_attention: bounds and lanes of each of ", count, " sources");
  int64_t lanes = 0;
  for (size_t i = 0; i < count; ++i) {
    TORCH_CHECK(memories.begins[i] >= 0 && memories.lengths[i] > 0 &&
                    memories.begins[i] + memories.lengths[i] <= kv.size(0),
                "[kernels] placed_cross_attention: rows outside of ", kv.sizes());
    lanes += memories.lanes[i];
  }
  TORCH_CHECK(lanes == q.size(0), "[kernels] placed_cross_attention: sources of ", lanes,
              " lanes for ", q.size(0));
}

/// The first lane of each source.
std::vector<int64_t> first_lanes(const PlacedMemories& memories) {
  std::vector<int64_t> first{0};
  for (const int64_t lanes : memories.lanes) first.push_back(first.back() + lanes);
  return first;
}

at::Tensor fused_memories(const at::Tensor& q, const at::Tensor& kv, const PlacedMemories& memories,
                          const PlacedHeads& heads) {
  const Compute compute = ComputeScope::current();
  const at::Tensor queries = rounded(q.contiguous(), compute);
  at::Tensor out = at::empty_like(queries);
  at::Tensor log_sums = at::empty({heads.queries, q.size(0)}, q.options());
  const std::vector<int64_t> first = first_lanes(memories);
  const int64_t width = q.size(1), step = kv.size(1), lanes = q.size(0);
  const float *from = queries.const_data_ptr<float>(), *rows = kv.const_data_ptr<float>();
  float *to = out.data_ptr<float>(), *sums = log_sums.data_ptr<float>();
  const int64_t items = std::ssize(memories.begins) * heads.keys;
  at::parallel_for(0, items, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const auto source = static_cast<size_t>(item / heads.keys);
      const int64_t kv_head = item % heads.keys, head = kv_head * heads.sharers();
      const int64_t lane = first[source], place = lane * width + head * heads.width;
      const float* keys = rows + memories.begins[source] * step + kv_head * heads.width;
      const cpu::AttentionItem one{
          .q = from + place,
          .k = keys,
          .v = keys + heads.row(),
          .q_stride = width,
          .kv_stride = step,
          .queries = memories.lanes[source],
          .keys = memories.lengths[source],
          .width = heads.width,
          .scale = 1.0f / std::sqrt(static_cast<float>(heads.width)),
          .causal = false,
          .first_element = head * cpu::kHeadStride,
          .drop = {.key = 0, .row_keys = nullptr, .threshold = 0, .scale = 1},
          .log_sum = sums + head * lanes + lane,
          .compute = compute,
          .heads = heads.sharers(),
          .log_sum_stride = lanes};
      cpu::table().attention(one, to + place, width);
    }
  });
  round_(out, compute);
  return out;
}

at::Tensor plain_memories(const at::Tensor& q, const at::Tensor& kv, const PlacedMemories& memories,
                          const PlacedHeads& heads) {
  std::vector<at::Tensor> out;
  int64_t lane = 0;
  for (size_t i = 0; i < memories.begins.size(); ++i) {
    const at::Tensor rows = kv.narrow(0, memories.begins[i], memories.lengths[i]);
    const at::Tensor keys = rows.narrow(1, 0, heads.row());
    const at::Tensor values = rows.narrow(1, heads.row(), heads.row());
    for (int64_t k = 0; k < memories.lanes[i]; ++k, ++lane) {
      out.push_back(plain_attention(q[lane].contiguous(), keys, values, heads, {}, 0));
    }
  }
  return at::stack(out);
}

}  // namespace

at::Tensor placed_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& keys, at::Tensor& values,
                                 PlacedHistories histories, int64_t num_heads,
                                 const DistanceBias& bias, const AttentionLimits& limits) {
  const at::NoGradGuard no_grad;
  const PlacedHeads heads = placed_heads(q, keys.size(1), num_heads, "placed_self_attention");
  check_histories(q, keys, histories, bias);
  TORCH_CHECK(keys.is_contiguous() && values.is_contiguous() && keys.sizes() == values.sizes(),
              "[kernels] placed_self_attention: dense buffers of one size, got ", keys.sizes(),
              " and ", values.sizes());
  if (q.size(0) == 0) return at::empty_like(q);
  if (is_fused(q) && is_fused(keys) && is_fused(values) &&
      (!bias.active() || is_fused(bias.table))) {
    write_steps(k_new, histories, keys);
    write_steps(v_new, histories, values);
    return fused_steps(q, keys, values, histories, heads, bias, limits);
  }
  std::vector<int64_t> present;
  for (const std::vector<int32_t>& places : histories) present.push_back(places.back());
  const at::Tensor index = at::tensor(present, at::kLong).to(keys.device());
  keys.index_copy_(0, index, k_new.to(keys.scalar_type()));
  values.index_copy_(0, index, v_new.to(values.scalar_type()));
  return plain_steps(q, keys, values, histories, heads, bias, limits);
}

at::Tensor placed_cross_attention(const at::Tensor& q, const at::Tensor& kv,
                                  const PlacedMemories& memories, int64_t num_heads) {
  const at::NoGradGuard no_grad;
  const PlacedHeads heads = placed_heads(q, kv.size(1) / 2, num_heads, "placed_cross_attention");
  check_memories(q, kv, memories);
  if (q.size(0) == 0) return at::empty_like(q);
  if (is_fused(q) && is_fused(kv) && kv.is_contiguous()) {
    return fused_memories(q, kv, memories, heads);
  }
  return plain_memories(q, kv, memories, heads);
}

}  // namespace stretto::kernels
