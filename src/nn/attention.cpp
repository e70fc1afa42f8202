#include "nn/attention.h"

#include <numbers>

#include "nn/watch.h"

namespace stretto::nn {
namespace {

constexpr double kGain = 1.0 / std::numbers::sqrt2;

}  // namespace

SelfAttentionImpl::SelfAttentionImpl(const Init& init, const AttentionOptions& opts)
    : options(opts) {
  const int64_t d = options.d_model, e = options.kv_width();
  const LinearOptions equal{.parts = 3, .gain = kGain};
  const LinearOptions unequal{.gain = kGain, .part_rows = {d, e, e}};
  qkv = register_module("qkv", Linear(init.child("qkv"), d, d + 2 * e, d == e ? equal : unequal));
  out = register_module("out", Linear(init.child("out"), d, d));
  if (options.max_distance == 0) return;
  const RelativeKeysOptions distances{.num_heads = options.num_heads,
                                      .head_width = d / options.num_heads,
                                      .max_distance = options.max_distance,
                                      .causal = options.causal};
  relative_keys =
      register_module("relative_keys", RelativeKeys(init.child("relative_keys"), distances));
}

kernels::DistanceBias SelfAttentionImpl::bias_of(const at::Tensor& rows,
                                                 const kernels::DistanceBias& bias) const {
  if (relative_keys.is_empty()) return bias;
  return relative_keys->forward(rows.narrow(1, 0, options.d_model));
}

at::Tensor SelfAttentionImpl::project(const at::Tensor& x, const at::Tensor& positions) const {
  // Turning rows and weighing distances are operators on fp32 rows.
  const bool plain = !options.rotary && relative_keys.is_empty();
  at::Tensor rows = qkv->forward(x, plain ? kernels::Storage::kRounded : kernels::Storage::kFp32);
  if (!options.rotary) return rows;
  const int64_t turned = options.num_heads + options.kv_heads();  // queries and keys
  return kernels::rotary(rows, positions, turned, options.d_model + options.kv_width(), 1);
}

std::vector<at::Tensor> SelfAttentionImpl::split(const at::Tensor& qkv_rows) const {
  const int64_t d = options.d_model, e = options.kv_width();
  return {qkv_rows.narrow(1, 0, d), qkv_rows.narrow(1, d, e), qkv_rows.narrow(1, d + e, e)};
}

at::Tensor SelfAttentionImpl::attend(const at::Tensor& x, const PackedRows& rows, bool causal,
                                     const kernels::Dropout& dropout,
                                     const kernels::DistanceBias& bias) const {
  return attend_projected(project(x, rows.positions), rows, causal, dropout, bias);
}

at::Tensor SelfAttentionImpl::attend_projected(const at::Tensor& projected, const PackedRows& rows,
                                               bool causal, const kernels::Dropout& dropout,
                                               const kernels::DistanceBias& bias) const {
  return watch(*this, kernels::self_attention(projected, {.offsets = rows.offsets,
                                                          .num_heads = options.num_heads,
                                                          .causal = causal,
                                                          .dropout = dropout,
                                                          .num_kv_heads = options.num_kv_heads,
                                                          .bias = bias_of(projected, bias)}));
}

at::Tensor SelfAttentionImpl::forward(const at::Tensor& x, const PackedRows& rows, bool causal,
                                      const kernels::Dropout& dropout,
                                      const kernels::DistanceBias& bias) const {
  return out->forward(attend(x, rows, causal, dropout, bias), kernels::Storage::kRounded);
}

CrossAttentionImpl::CrossAttentionImpl(const Init& init, const AttentionOptions& options) {
  const int64_t d = options.d_model, e = options.kv_width();
  const LinearOptions single{.gain = kGain};
  const LinearOptions merged{.parts = 2, .gain = kGain};
  q = register_module("q", Linear(init.child("q"), d, d, single));
  kv = register_module("kv", Linear(init.child("kv"), d, 2 * e, merged));
  out = register_module("out", Linear(init.child("out"), d, d));
}

at::Tensor CrossAttentionImpl::forward(const at::Tensor& x, const at::Tensor& memory,
                                       const kernels::CrossAttention& attention) const {
  constexpr auto kRounded = kernels::Storage::kRounded;
  const at::Tensor attended =
      kernels::cross_attention(q->forward(x, kRounded), kv->forward(memory, kRounded), attention);
  return out->forward(watch(*this, attended), kRounded);
}

}  // namespace stretto::nn
