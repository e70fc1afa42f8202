#include "kernels/kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "kernels/cast.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"
#include "kernels/fused.h"
#include "kernels/loss/r_drop.h"
#include "kernels/quantised/quantised.h"
#include "kernels/reference.h"

namespace stretto::kernels {
namespace {

constexpr int64_t kMostPositions = int64_t{1} << 24;  // bounds the table of angles of rotary

/// Whether rows are rounded to 8 bits for weights that are codes: fp32 on the CPU, and no gradient.
bool meets_codes(const at::Tensor& x, const at::Tensor& bias) {
  const bool learns =
      at::GradMode::is_enabled() && (x.requires_grad() || (bias.defined() && bias.requires_grad()));
  return is_fused(x) && x.dim() == 2 && !learns && (!bias.defined() || is_fused(bias));
}

void check_kv_heads(int64_t heads, int64_t kv_heads, const char* name) {
  TORCH_CHECK(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "[kernels] ", name, ": ",
              kv_heads, " heads of keys do not divide ", heads, " heads of queries");
}

void check_cross(const at::Tensor& q, const at::Tensor& kv, const CrossAttention& options) {
  check_rows(q, "cross_attention");
  check_rows(kv, "cross_attention");
  check_heads(q.size(1), options.num_heads, "cross_attention");
  check_kv_heads(options.num_heads, options.kv_heads(), "cross_attention");
  const int64_t width = 2 * options.kv_heads() * (q.size(1) / options.num_heads);
  TORCH_CHECK(kv.size(1) == width, "[kernels] cross_attention: kv must be ", width, " wide, got ",
              kv.size(1));
  TORCH_CHECK(options.query_offsets.values.sizes() == options.key_offsets.values.sizes(),
              "[kernels] cross_attention: queries and keys have different numbers of sequences");
}

int64_t longest_of(const Offsets& offsets) {
  if (!offsets.values.is_cpu() && offsets.max_length > 0) return offsets.max_length;
  if (offsets.values.size(0) < 2) return 0;
  return at::diff(offsets.values).max().item<int64_t>();
}

/// Checks the shape of a bias for `rows` queries.
void check_bias_of_queries(const DistanceBias& bias, int64_t rows, int64_t heads,
                           const char* name) {
  const at::Tensor& table = bias.table;
  TORCH_CHECK(table.size(0) == rows && table.size(1) == heads && bias.zero >= 0 &&
                  bias.zero < table.size(2),
              "[kernels] ", name, ": a bias of queries needs ", rows, " rows of ", heads,
              " heads, with distance 0 inside its columns, got ", table.sizes(),
              " with distance 0 at ", bias.zero);
}

void check_distance_bias(const DistanceBias& bias, int64_t heads, int64_t before, int64_t behind,
                         const char* name) {
  const at::Tensor& table = bias.table;
  TORCH_CHECK(table.dim() == 2 && table.size(0) == heads && bias.zero >= before &&
                  table.size(1) > bias.zero + behind,
              "[kernels] ", name, ": the bias of distances needs ", heads, " rows, ", before,
              " columns in front of that of distance 0 and ", behind, " behind it, got ",
              table.sizes(), " with distance 0 at ", bias.zero);
}

void check_limits(const AttentionLimits& limits, const DistanceBias& bias, bool causal,
                  const char* name) {
  TORCH_CHECK(limits.window >= 0 && (causal || limits.window == 0), "[kernels] ", name,
              ": a window of ", limits.window, " keys belongs to causal attention");
  TORCH_CHECK(limits.softcap <= 0 || !bias.active(), "[kernels] ", name,
              ": bent scores have no bias of distances");
  TORCH_CHECK(limits.window == 0 || !bias.is_of_queries(), "[kernels] ", name,
              ": a window has no bias of queries");
}

/// `first` of decode_self_attention, and not before the window of step t.
at::Tensor first_within(const AttentionLimits& limits, int64_t t, const at::Tensor& first,
                        const at::Tensor& q) {
  if (limits.window == 0 || t < limits.window) return first;
  const int64_t begin = t - limits.window + 1;
  return first.defined() ? first.clamp_min(begin)
                         : at::full({q.size(0)}, begin, q.options().dtype(at::kInt));
}

void check_gated(const at::Tensor& gate_up, const Dropout& dropout, const char* name) {
  check_rows(gate_up, name);
  check_dropout(dropout, gate_up.size(0), name);
  TORCH_CHECK(gate_up.size(1) % 2 == 0, "[kernels] ", name, ": width must be even, got ",
              gate_up.size(1));
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout) {
  check_rows(x, "dropout");
  check_dropout(dropout, x.size(0), "dropout");
  if (!dropout.active()) return x;
  if (is_fused(x)) return fused::dropout(x, dropout);
  const auto kernel = on_gpu(cuda::table().dropout, x);
  return kernel != nullptr ? kernel(x, dropout) : reference::dropout(x, dropout);
}

at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout) {
  check_rows(x, "dropout_add");
  check_dropout(dropout, x.size(0), "dropout_add");
  TORCH_CHECK(x.sizes() == residual.sizes(), "[kernels] dropout_add: x is ", x.sizes(),
              ", residual is ", residual.sizes());
  if (!dropout.active()) return x + residual;
  if (is_fused(x) && is_fused(residual)) return fused::dropout_add(x, residual, dropout);
  const auto kernel = on_gpu_beside_half(cuda::table().dropout_add, x, residual);
  return kernel != nullptr ? kernel(x, residual, dropout)
                           : reference::dropout_add(x, residual, dropout);
}

at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout) {
  check_rows(x, "bias_activation_dropout");
  check_dropout(dropout, x.size(0), "bias_activation_dropout");
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == x.size(1),
              "[kernels] bias_activation_dropout: ", "bias must be [", x.size(1), "], got ",
              bias.sizes());
  if (is_fused(x) && is_fused(bias)) {
    switch (activation) {
      case Activation::kRelu:
        return fused::bias_relu_dropout(x, bias, dropout);
      case Activation::kGelu:
        return fused::bias_gelu_dropout(x, bias, dropout);
      case Activation::kGeluTanh:
        return fused::bias_gelu_tanh_dropout(x, bias, dropout);
      case Activation::kSilu:
        return fused::bias_silu_dropout(x, bias, dropout);
      case Activation::kReluSquared:
        return fused::bias_relu_squared_dropout(x, bias, dropout);
    }
  }
  // A GPU has no kernels of these two.
  const auto kernel = activation == Activation::kSilu || activation == Activation::kReluSquared
                          ? nullptr
                          : on_gpu_beside_half(cuda::table().bias_activation_dropout, x, bias);
  return kernel != nullptr ? kernel(x, bias, activation, dropout)
                           : reference::bias_activation_dropout(x, bias, activation, dropout);
}

at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  check_gated(gate_up, dropout, "swiglu_dropout");
  if (is_fused(gate_up)) return fused::swiglu_dropout(gate_up, dropout);
  const auto kernel = on_gpu(cuda::table().swiglu_dropout, gate_up);
  return kernel != nullptr ? kernel(gate_up, dropout) : reference::swiglu_dropout(gate_up, dropout);
}

at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  check_gated(gate_up, dropout, "geglu_dropout");
  if (is_fused(gate_up)) return fused::geglu_dropout(gate_up, dropout);
  const auto kernel = on_gpu(cuda::table().geglu_dropout, gate_up);
  return kernel != nullptr ? kernel(gate_up, dropout) : reference::geglu_dropout(gate_up, dropout);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon) {
  check_rows(x, "layer_norm");
  TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(1) && bias.sizes() == weight.sizes(),
              "[kernels] layer_norm: weight and bias must be [", x.size(1), "], got ",
              weight.sizes(), " and ", bias.sizes());
  if (is_fused(x) && is_fused(weight) && is_fused(bias))
    return fused::layer_norm(x, weight, bias, epsilon);
  const auto kernel = cuda::takes(x, bias) ? on_gpu(cuda::table().layer_norm, x, weight) : nullptr;
  return kernel != nullptr ? kernel(x, weight, bias, epsilon)
                           : at::layer_norm(x, {x.size(1)}, weight, bias, epsilon);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  check_rows(x, "rms_norm");
  TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(1),
              "[kernels] rms_norm: weight must be [", x.size(1), "], got ", weight.sizes());
  if (is_fused(x) && is_fused(weight)) return fused::rms_norm(x, weight, epsilon);
  if (is_cuda_float(x) && weight.scalar_type() == x.scalar_type())
    return at::rms_norm(x, {x.size(1)}, weight, epsilon);
  return reference::rms_norm(x, weight, epsilon);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Storage storage) {
  if (const auto codes = stood_for(weight)) {
    if (meets_codes(x, bias))
      return quantised_linear(x, *codes->matrix, bias, codes->first, codes->count);
    return linear(x, dense_weight(weight).to(x.options()), bias, storage);
  }
  const bool fused = is_fused(x) && x.dim() == 2 && is_fused(weight) && weight.dim() == 2 &&
                     weight.size(1) == x.size(1) &&
                     (!bias.defined() || (is_fused(bias) && bias.numel() == weight.size(0)));
  if (fused) return fused::linear(x, weight, bias);
  // By the weight, since rows may be in the half type already.
  const Compute compute = x.dim() == 2 ? cuda_compute(weight) : Compute::kFp32;
  if (compute != Compute::kFp32) return cast::linear(x, weight, bias, compute, storage);
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor widened(const at::Tensor& x) {
  return is_half_type(x) ? x.to(at::kFloat) : x;
}

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options) {
  check_rows(qkv, "self_attention");
  check_kv_heads(options.num_heads, options.kv_heads(), "self_attention");
  check_heads(qkv.size(1), options.num_heads + 2 * options.kv_heads(), "self_attention");
  check_dropout(options.dropout, qkv.size(0), "self_attention");
  check_limits(options.limits, options.bias, options.causal, "self_attention");
  if (options.bias.is_of_queries()) {
    check_bias_of_queries(options.bias, qkv.size(0), options.num_heads, "self_attention");
  } else if (options.bias.active()) {
    const int64_t most = std::max<int64_t>(longest_of(options.offsets) - 1, 0);
    check_distance_bias(options.bias, options.num_heads, most, options.causal ? 0 : most,
                        "self_attention");
  }
  if (is_fused(qkv) && (!options.bias.active() || is_fused(options.bias.table)))
    return fused::self_attention(qkv, options);
  // No kernel of a GPU knows limits; half rows would lose digits in the plain form.
  if (options.limits.any()) return reference::self_attention(widened(qkv), options);
  const auto kernel = on_gpu(cuda::table().self_attention, qkv);
  if (kernel == nullptr) return reference::self_attention(qkv, options);
  if (const Compute compute = cuda_compute(qkv); is_half(compute))
    return cast::in_half(
        compute, [&](const at::Tensor& x) { return kernel(x, options); }, qkv);
  return kernel(qkv, options);
}

at::Tensor cross_attention(const at::Tensor& q_rows, const at::Tensor& kv_rows,
                           const CrossAttention& options) {
  const bool alike = q_rows.scalar_type() == kv_rows.scalar_type();
  const at::Tensor q = alike ? q_rows : widened(q_rows), kv = alike ? kv_rows : widened(kv_rows);
  check_cross(q, kv, options);
  check_dropout(options.dropout, q.size(0), "cross_attention");
  if (is_fused(q) && is_fused(kv)) return fused::cross_attention(q, kv, options);
  const auto place = cuda::table().cross_attention;
  if (const Compute compute = cuda_compute(q); place != nullptr && is_half(compute))
    return cast::in_half(
        compute, [&](const at::Tensor& x, const at::Tensor& y) { return place(x, y, options); }, q,
        kv);
  const auto kernel = on_gpu(place, q, kv);
  return kernel != nullptr ? kernel(q, kv, options) : reference::cross_attention(q, kv, options);
}

at::Tensor cross_attention_weights(const at::Tensor& q_rows, const at::Tensor& kv_rows,
                                   const CrossAttention& options) {
  const at::Tensor q = widened(q_rows), kv = widened(kv_rows);
  check_cross(q, kv, options);
  if (is_fused(q) && is_fused(kv)) return fused::cross_attention_weights(q, kv, options);
  const auto kernel = on_gpu(cuda::table().cross_attention_weights, q, kv);
  return kernel != nullptr ? kernel(q, kv, options)
                           : reference::cross_attention_weights(q, kv, options);
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles) {
  check_rows(x, "rotary");
  check_heads(d_model, num_heads, "rotary");
  TORCH_CHECK((d_model / num_heads) % 2 == 0 && num_parts * d_model <= x.size(1) &&
                  positions.dim() == 1 && positions.size(0) == x.size(0),
              "[kernels] rotary: x ", x.sizes(), " does not fit positions ", positions.sizes(),
              ", ", num_parts, " parts of ", d_model, " and ", num_heads, " heads of even width");
  TORCH_CHECK(
      !angles.frequencies.defined() ||
          (angles.frequencies.is_cpu() && angles.frequencies.scalar_type() == at::kDouble &&
           angles.frequencies.dim() == 1 && 2 * angles.frequencies.size(0) == d_model / num_heads),
      "[kernels] rotary: heads of ", d_model / num_heads,
      " columns need half as many frequencies in fp64 on the CPU, got ",
      angles.frequencies.sizes());
  if (is_fused(x)) check_range(positions, kMostPositions, "rotary", "position");
  if (is_fused(x) && positions.scalar_type() == at::kLong)
    return fused::rotary(x, positions, num_heads, d_model, num_parts, angles);
  const auto kernel = on_gpu(cuda::table().rotary, x);
  return kernel != nullptr ? kernel(x, positions, num_heads, d_model, num_parts, angles)
                           : reference::rotary(x, positions, num_heads, d_model, num_parts, angles);
}

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position) {
  check_rows(table, "embed");
  TORCH_CHECK(ids.dim() == 1, "[kernels] embed: ids must be a vector, got ", ids.sizes());
  TORCH_CHECK(!position.defined() || (position.dim() == 2 && position.size(0) == ids.size(0) &&
                                      position.size(1) == table.size(1)),
              "[kernels] embed: position must be [", ids.size(0), ", ", table.size(1), "], got ",
              position.sizes());
  if (stood_for(table)) {
    const at::Tensor rows = weight_rows(table, ids) * scale;
    return position.defined() ? rows + position : rows;
  }
  if (is_fused(table) && ids.scalar_type() == at::kLong &&
      (!position.defined() || is_fused(position))) {
    check_range(ids, table.size(0), "embed", "id");
    return fused::embed(table, ids, scale, position);
  }
  const auto kernel = on_gpu(cuda::table().embed, table);
  return kernel != nullptr ? kernel(table, ids, scale, position)
                           : reference::embed(table, ids, scale, position);
}

CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias, double softcap) {
  check_rows(x, "linear_cross_entropy");
  check_rows(weight, "linear_cross_entropy");
  if (stood_for(weight) && !(meets_codes(x, bias) && targets.scalar_type() == at::kLong))
    return linear_cross_entropy(x, dense_weight(weight), targets, smoothing, num_classes, bias,
                                softcap);
  TORCH_CHECK(weight.size(1) == x.size(1) && targets.dim() == 1 && targets.size(0) == x.size(0) &&
                  num_classes > 1 && num_classes <= weight.size(0),
              "[kernels] linear_cross_entropy: x ", x.sizes(), ", weight ", weight.sizes(),
              ", targets ", targets.sizes(), " and ", num_classes, " classes do not fit");
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
              "[kernels] linear_cross_entropy: bias must be [", weight.size(0), "], got ",
              bias.sizes());
  if (x.is_cpu()) check_range(targets, num_classes, "linear_cross_entropy", "target");
  if (is_fused(x) && is_fused(weight) && targets.scalar_type() == at::kLong &&
      (!bias.defined() || is_fused(bias)))
    return fused::linear_cross_entropy(x, weight, targets, smoothing, num_classes, bias, softcap);
  // The kernel of a GPU bends no logits.
  const auto kernel = softcap > 0 ? nullptr : on_gpu(cuda::table().linear_cross_entropy, x, weight);
  return kernel != nullptr ? kernel(x, weight, targets, smoothing, num_classes, bias)
                           : reference::linear_cross_entropy(x, weight, targets, smoothing,
                                                             num_classes, bias, softcap);
}

at::Tensor softcapped(const at::Tensor& x, double softcap) {
  return softcap > 0 ? at::tanh(x / softcap) * softcap : x;
}

CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias) {
  check_rows(x, "linear_r_drop");
  check_rows(weight, "linear_r_drop");
  if (stood_for(weight)) return linear_r_drop(x, dense_weight(weight), targets, options, bias);
  TORCH_CHECK(weight.size(1) == x.size(1) && targets.dim() == 1 &&
                  2 * targets.size(0) == x.size(0) && options.num_classes > 1 &&
                  options.num_classes <= weight.size(0) && options.alpha >= 0,
              "[kernels] linear_r_drop: x ", x.sizes(), " of two passes, weight ", weight.sizes(),
              ", targets ", targets.sizes(), ", ", options.num_classes, " classes and alpha ",
              options.alpha, " do not fit");
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
              "[kernels] linear_r_drop: bias must be [", weight.size(0), "], got ", bias.sizes());
  if (x.is_cpu()) check_range(targets, options.num_classes, "linear_r_drop", "target");
  const auto kernel = on_gpu(cuda::table().linear_r_drop, x, weight);
  return kernel != nullptr ? kernel(x, weight, targets, options, bias)
                           : r_drop::linear_r_drop(x, weight, targets, options, bias);
}

at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias, const at::Tensor& given_first,
                                 const AttentionLimits& limits) {
  check_rows(q, "decode_self_attention");
  check_heads(q.size(1), num_heads, "decode_self_attention");
  check_limits(limits, bias, /*causal=*/true, "decode_self_attention");
  const at::Tensor first = first_within(limits, t, given_first, q);
  TORCH_CHECK(t >= 0 && t < k_cache.size(0) && t < lineage.size(1),
              "[kernels] decode_self_attention: step ", t, " is outside the cache ",
              k_cache.sizes());
  TORCH_CHECK(!first.defined() || (first.dim() == 1 && first.size(0) == q.size(0) &&
                                   first.scalar_type() == at::kInt && first.is_contiguous()),
              "[kernels] decode_self_attention: first must be int32 [", q.size(0), "], got ",
              first.sizes());
  const int64_t width = q.size(1) / num_heads;
  check_heads(k_cache.size(2), std::max<int64_t>(k_cache.size(2) / width, 1),
              "decode_self_attention");
  check_kv_heads(num_heads, k_cache.size(2) / width, "decode_self_attention");
  if (bias.is_of_queries()) {
    check_bias_of_queries(bias, q.size(0), num_heads, "decode_self_attention");
  } else if (bias.active()) {
    check_distance_bias(bias, num_heads, t, 0, "decode_self_attention");
  }
  if (is_fused(q) && is_fused(k_cache) && is_fused(v_cache) && k_cache.is_contiguous() &&
      v_cache.is_contiguous() && lineage.scalar_type() == at::kInt &&
      (!bias.active() || is_fused(bias.table)))
    return fused::decode_self_attention(q, k_new, v_new, k_cache, v_cache, lineage, t, num_heads,
                                        bias, first, limits.softcap);
  // The kernel of a GPU bends no scores.
  const auto kernel = limits.softcap > 0 ? nullptr : cuda::table().decode_self_attention;
  if (kernel != nullptr && cuda::takes_decoding(q, k_cache, v_cache, lineage, t))
    return kernel(q, k_new, v_new, k_cache, v_cache, lineage, t, num_heads, bias, first);
  return reference::decode_self_attention(q, k_new, v_new, k_cache, v_cache, lineage, t, num_heads,
                                          bias, first, limits.softcap);
}

double sum_of_squares(const at::Tensor& flat) {
  TORCH_CHECK(flat.dim() == 1, "[kernels] sum_of_squares: need a flat buffer");
  if (is_fused(flat) && flat.is_contiguous()) return fused::sum_of_squares(flat);
  const auto kernel = on_gpu(cuda::table().sum_of_squares, flat);
  return kernel != nullptr && flat.is_contiguous() ? kernel(flat) : reference::sum_of_squares(flat);
}

std::vector<double> sum_of_squares_blocks(const at::Tensor& flat) {
  TORCH_CHECK(flat.dim() == 1, "[kernels] sum_of_squares_blocks: need a flat buffer");
  if (is_fused(flat) && flat.is_contiguous()) return fused::sum_of_squares_blocks(flat);
  const auto kernel = on_gpu(cuda::table().sum_of_squares_blocks, flat);
  return kernel != nullptr && flat.is_contiguous() ? kernel(flat)
                                                   : reference::sum_of_squares_blocks(flat);
}

}  // namespace stretto::kernels
