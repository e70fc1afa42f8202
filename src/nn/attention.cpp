#include "nn/attention.h"

#include <ATen/ops/cat.h>

#include <numbers>

#include "nn/attention_record.h"
#include "nn/rotary.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

constexpr double kGain = 1.0 / std::numbers::sqrt2;

}  // namespace

SelfAttentionImpl::SelfAttentionImpl(const Init& init, const AttentionOptions& opts)
    : options(opts) {
  const int64_t d = options.d_model, q = options.q_width(), e = options.kv_width();
  const LinearOptions equal{.parts = 3, .gain = kGain, .bias = options.qkv_bias};
  const LinearOptions unequal{.gain = kGain, .bias = options.qkv_bias, .part_rows = {q, e, e}};
  qkv = register_module("qkv", Linear(init.child("qkv"), d, q + 2 * e, q == e ? equal : unequal));
  out = register_module("out", Linear(init.child("out").of_residual(), q, d,
                                      LinearOptions{.bias = options.out_bias}));
  if (options.rotary) angles_ = rotary_angles(options.rope, options.head_width());
  if (options.qk_norm) {
    const auto norm = [&](const char* name) {
      return RmsNorm(init.child(name), options.head_width(), /*zero_gamma=*/false,
                     options.norm_epsilon);
    };
    q_norm = register_module("q_norm", norm("q_norm"));
    k_norm = register_module("k_norm", norm("k_norm"));
  }
  if (options.max_distance == 0) return;
  const RelativeKeysOptions distances{.num_heads = options.num_heads,
                                      .head_width = options.head_width(),
                                      .max_distance = options.max_distance,
                                      .causal = options.causal};
  relative_keys =
      register_module("relative_keys", RelativeKeys(init.child("relative_keys"), distances));
}

kernels::DistanceBias SelfAttentionImpl::bias_of(const at::Tensor& rows,
                                                 const kernels::DistanceBias& bias) const {
  if (relative_keys.is_empty()) return bias;
  return relative_keys->forward(rows.narrow(1, 0, options.q_width()));
}

at::Tensor SelfAttentionImpl::project(const at::Tensor& x, const at::Tensor& positions) const {
  // Turning rows and weighing distances are operators on fp32 rows.
  const bool plain = !options.rotary && !options.qk_norm && relative_keys.is_empty();
  at::Tensor rows = qkv->forward(x, plain ? kernels::Storage::kRounded : kernels::Storage::kFp32);
  if (options.qk_norm) rows = with_normed_heads(rows);
  if (!options.rotary) return rows;
  const int64_t turned = options.num_heads + options.kv_heads();  // queries and keys
  return kernels::rotary(rows, positions, turned, options.q_width() + options.kv_width(), 1,
                         angles_);
}

at::Tensor SelfAttentionImpl::with_normed_heads(const at::Tensor& rows) const {
  const std::vector<at::Tensor> parts = split(rows);
  // Each head is a row of the norm.
  const auto normed = [&](const RmsNorm& norm, const at::Tensor& part) {
    return norm->forward(part.reshape({-1, options.head_width()})).view(part.sizes());
  };
  return at::cat({normed(q_norm, parts[0]), normed(k_norm, parts[1]), parts[2]}, 1);
}

std::vector<at::Tensor> SelfAttentionImpl::split(const at::Tensor& qkv_rows) const {
  const int64_t q = options.q_width(), e = options.kv_width();
  return {qkv_rows.narrow(1, 0, q), qkv_rows.narrow(1, q, e), qkv_rows.narrow(1, q + e, e)};
}

at::Tensor SelfAttentionImpl::attend(const at::Tensor& x, const PackedRows& rows, bool causal,
                                     const kernels::Dropout& dropout,
                                     const kernels::DistanceBias& bias) const {
  return attend_projected(project(x, rows.positions), rows, causal, dropout, bias);
}

at::Tensor SelfAttentionImpl::attend_projected(const at::Tensor& projected, const PackedRows& rows,
                                               bool causal, const kernels::Dropout& dropout,
                                               const kernels::DistanceBias& bias) const {
  if (AttentionRows* record = AttentionRecordScope::current()) {
    const auto parts = split(projected);
    *record = {parts[0], parts[1], parts[2], options.num_heads, options.kv_heads()};
  }
  return watch(*this, kernels::self_attention(projected, {.offsets = rows.offsets,
                                                          .num_heads = options.num_heads,
                                                          .causal = causal,
                                                          .dropout = dropout,
                                                          .num_kv_heads = options.num_kv_heads,
                                                          .bias = bias_of(projected, bias),
                                                          .limits = options.limits}));
}

at::Tensor SelfAttentionImpl::forward(const at::Tensor& x, const PackedRows& rows, bool causal,
                                      const kernels::Dropout& dropout,
                                      const kernels::DistanceBias& bias) const {
  return out->forward(attend(x, rows, causal, dropout, bias), kernels::Storage::kRounded);
}

CrossAttentionImpl::CrossAttentionImpl(const Init& init, const AttentionOptions& options) {
  const int64_t d = options.d_model, width = options.q_width(), e = options.kv_width();
  const LinearOptions single{.gain = kGain};
  const LinearOptions merged{.parts = 2, .gain = kGain};
  q = register_module("q", Linear(init.child("q"), d, width, single));
  kv = register_module("kv", Linear(init.child("kv"), d, 2 * e, merged));
  out = register_module("out", Linear(init.child("out"), width, d));
}

at::Tensor CrossAttentionImpl::forward(const at::Tensor& x, const at::Tensor& memory,
                                       const kernels::CrossAttention& attention) const {
  constexpr auto kRounded = kernels::Storage::kRounded;
  const at::Tensor attended =
      kernels::cross_attention(q->forward(x, kRounded), kv->forward(memory, kRounded), attention);
  return out->forward(watch(*this, attended), kRounded);
}

}  // namespace stretto::nn
