#include "kernels/reference.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace stretto::kernels::reference {
namespace {

constexpr int64_t kHeadStride = int64_t{1} << 20;  // dropout elements reserved for one head

std::vector<int64_t> bounds(const Offsets& offsets) {
  const at::Tensor host = offsets.values.to(at::kCPU, at::kLong).contiguous();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel()};
}

/// x [T, D] -> [H, T, D / H].
at::Tensor split_heads(const at::Tensor& x, int64_t num_heads) {
  return x.view({x.size(0), num_heads, x.size(1) / num_heads}).transpose(0, 1);
}

/// Heads [G, T, W] of keys or values, each as often as heads of queries share it.
at::Tensor shared_heads(const at::Tensor& x, int64_t kv_heads, int64_t num_heads) {
  const at::Tensor heads = split_heads(x, kv_heads);
  return kv_heads == num_heads ? heads : heads.repeat_interleave(num_heads / kv_heads, 0);
}

struct Mask {
  bool causal;
  const Dropout& dropout;
  at::Tensor row_keys;  // of these queries, when dropout is active
  int64_t num_heads, kv_heads;
  const DistanceBias& bias;
  AttentionLimits limits = {};
};

/// Attention weights [H, Tq, Tk] of one sequence, after dropout.
at::Tensor weights_of(const at::Tensor& q, const at::Tensor& k, const Mask& mask) {
  const int64_t num_heads = mask.num_heads;
  const at::Tensor queries = split_heads(q, num_heads);
  const at::Tensor keys = shared_heads(k, mask.kv_heads, num_heads);
  at::Tensor scores =
      at::matmul(queries, keys.transpose(1, 2)) / std::sqrt(static_cast<double>(queries.size(2)));
  scores = softcapped(scores, mask.limits.softcap);
  if (mask.bias.active())
    scores = scores + bias_of_scores(mask.bias, q.size(0), k.size(0)).to(scores.scalar_type());
  if (mask.causal) {
    const at::Tensor all = at::ones({q.size(0), k.size(0)}, scores.options().dtype(at::kBool));
    scores = scores.masked_fill(all.triu(1), -INFINITY);
    if (mask.limits.window > 0)
      scores = scores.masked_fill(all.tril(-mask.limits.window), -INFINITY);
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (!mask.dropout.active()) return weights;
  std::vector<at::Tensor> factors;
  for (int64_t head = 0; head < num_heads; ++head)
    factors.push_back(dropout_factors(mask.dropout, mask.row_keys, head * kHeadStride, k.size(0)));
  return weights * at::stack(factors).to(weights.device(), weights.scalar_type());
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Mask& mask) {
  const at::Tensor out =
      at::matmul(weights_of(q, k, mask), shared_heads(v, mask.kv_heads, mask.num_heads));
  return out.transpose(0, 1).reshape({q.size(0), q.size(1)});
}

at::Tensor keys_of_rows(const Dropout& dropout, int64_t begin, int64_t end) {
  return dropout.active() ? dropout.row_keys.slice(0, begin, end) : at::Tensor();
}

at::Tensor concatenate(const std::vector<at::Tensor>& parts, const at::Tensor& like) {
  return parts.empty() ? at::zeros_like(like) : at::cat(parts);
}

}  // namespace

at::Tensor dropout_factors(const Dropout& dropout, const at::Tensor& row_keys, int64_t first,
                           int64_t count) {
  const at::Tensor keys = row_keys.to(at::kCPU, at::kLong).contiguous();
  const auto threshold = static_cast<uint32_t>(std::lround(dropout.p * 65536));
  const double scale = 65536.0 / (65536.0 - threshold);
  at::Tensor factors = at::empty({keys.size(0), count}, at::kDouble);
  double* out = factors.data_ptr<double>();
  for (int64_t row = 0; row < keys.size(0); ++row) {
    const auto row_key = static_cast<uint64_t>(keys.data_ptr<int64_t>()[row]);
    for (int64_t j = first; j < first + count; ++j) {
      const auto words = Philox::at(dropout.key, row_key, static_cast<uint64_t>(j / 8));
      const uint32_t lane = (words[(j % 8) / 2] >> (16 * (j % 2))) & 0xFFFFu;
      *out++ = lane >= threshold ? scale : 0.0;
    }
  }
  return factors;
}

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout) {
  if (!dropout.active()) return x;
  const at::Tensor factors = dropout_factors(dropout, dropout.row_keys, 0, x.size(1));
  return x * factors.to(x.device(), x.scalar_type());
}

at::Tensor dropout_add(const at::Tensor& x, const at::Tensor& residual, const Dropout& dropout) {
  return reference::dropout(x, dropout) + residual;
}

at::Tensor bias_activation_dropout(const at::Tensor& x, const at::Tensor& bias,
                                   Activation activation, const Dropout& dropout) {
  const at::Tensor sum = x + bias;
  if (activation == Activation::kRelu) return reference::dropout(at::relu(sum), dropout);
  if (activation == Activation::kSilu) return reference::dropout(at::silu(sum), dropout);
  if (activation == Activation::kReluSquared)
    return reference::dropout(at::relu(sum).square(), dropout);
  return reference::dropout(at::gelu(sum, activation == Activation::kGelu ? "none" : "tanh"),
                            dropout);
}

at::Tensor swiglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  const auto parts = gate_up.chunk(2, 1);
  return reference::dropout(at::silu(parts[0]) * parts[1], dropout);
}

at::Tensor geglu_dropout(const at::Tensor& gate_up, const Dropout& dropout) {
  const auto parts = gate_up.chunk(2, 1);
  return reference::dropout(at::gelu(parts[0]) * parts[1], dropout);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  // The square of a half number may overflow, and its mean needs more digits.
  const at::ScalarType wide = at::toOpMathType(x.scalar_type());
  const at::Tensor rows = x.to(wide);
  const at::Tensor inverse = at::rsqrt(rows.square().mean(-1, /*keepdim=*/true) + epsilon);
  return (rows * inverse * weight.to(wide)).to(x.scalar_type());
}

at::Tensor bias_of_scores(const DistanceBias& bias, int64_t queries, int64_t keys) {
  const at::TensorOptions ids = at::dtype(at::kLong).device(bias.table.device());
  const at::Tensor distances = at::arange(keys, ids) - at::arange(queries, ids).unsqueeze(1);
  // Distances to later tokens, which causal attention masks, are outside the table; clamp them.
  const at::Tensor columns = (distances + bias.zero).clamp(0, bias.table.size(-1) - 1);
  if (bias.is_of_queries())
    return bias.table.transpose(0, 1).gather(2, columns.expand({bias.table.size(1), -1, -1}));
  return at::embedding(bias.table.t(), columns).permute({2, 0, 1});
}

at::Tensor bias_of_step(const DistanceBias& bias, int64_t t) {
  if (!bias.is_of_queries()) return bias.table.slice(1, bias.zero - t, bias.zero + 1);
  const at::TensorOptions ids = at::dtype(at::kLong).device(bias.table.device());
  const at::Tensor columns = at::arange(bias.zero - t, bias.zero + 1, ids);
  return bias.table.index_select(2, columns.clamp_min(0));
}

at::Tensor self_attention(const at::Tensor& qkv, const SelfAttention& options) {
  const auto rows = bounds(options.offsets);
  const int64_t heads = options.num_heads, kv_heads = options.kv_heads();
  const int64_t width = qkv.size(1) / (heads + 2 * kv_heads);
  const auto parts = qkv.split_with_sizes({heads * width, kv_heads * width, kv_heads * width}, 1);
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    if (rows[i] == rows[i + 1]) continue;
    const auto of = [&](const at::Tensor& x) { return x.slice(0, rows[i], rows[i + 1]); };
    DistanceBias bias = options.bias;
    if (bias.is_of_queries()) bias.table = of(bias.table);
    outputs.push_back(attend(
        of(parts[0]), of(parts[1]), of(parts[2]),
        {options.causal, options.dropout, keys_of_rows(options.dropout, rows[i], rows[i + 1]),
         heads, kv_heads, bias, options.limits}));
  }
  return concatenate(outputs, parts[0]);
}

at::Tensor cross_attention(const at::Tensor& q, const at::Tensor& kv,
                           const CrossAttention& options) {
  const auto rows = bounds(options.query_offsets), cols = bounds(options.key_offsets);
  const auto parts = kv.chunk(2, 1);
  const DistanceBias none;
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    if (rows[i] == rows[i + 1]) continue;
    const auto of = [&](const at::Tensor& x) { return x.slice(0, cols[i], cols[i + 1]); };
    outputs.push_back(
        attend(q.slice(0, rows[i], rows[i + 1]), of(parts[0]), of(parts[1]),
               {false, options.dropout, keys_of_rows(options.dropout, rows[i], rows[i + 1]),
                options.num_heads, options.kv_heads(), none}));
  }
  return concatenate(outputs, q);
}

at::Tensor cross_attention_weights(const at::Tensor& q, const at::Tensor& kv,
                                   const CrossAttention& options) {
  const at::NoGradGuard no_grad;
  const auto rows = bounds(options.query_offsets), cols = bounds(options.key_offsets);
  const at::Tensor keys = kv.chunk(2, 1)[0];
  const Dropout off;
  const DistanceBias none;
  std::vector<at::Tensor> blocks;
  for (size_t i = 0; i + 1 < rows.size(); ++i)
    blocks.push_back(weights_of(q.slice(0, rows[i], rows[i + 1]),
                                keys.slice(0, cols[i], cols[i + 1]),
                                {false, off, {}, options.num_heads, options.kv_heads(), none})
                         .mean(0)
                         .flatten());
  return blocks.empty() ? at::empty({0}, q.options()) : at::cat(blocks);
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, int64_t num_heads,
                  int64_t d_model, int64_t num_parts, const RotaryAngles& angles) {
  const int64_t width = d_model / num_heads, turned = num_parts * d_model;
  const at::Tensor power = at::arange(0, width, 2, x.options().dtype(at::kDouble)) / width;
  const at::Tensor frequencies =
      angles.frequencies.defined() ? angles.frequencies.to(x.device()) : at::pow(10000.0, -power);
  const at::Tensor angle = positions.to(at::kDouble).unsqueeze(1) * frequencies;
  const at::Tensor cos = (at::cos(angle) * angles.factor).to(x.scalar_type()).unsqueeze(1);
  const at::Tensor sin = (at::sin(angle) * angles.factor).to(x.scalar_type()).unsqueeze(1);
  const auto halves =
      x.slice(1, 0, turned).reshape({x.size(0), num_parts * num_heads, width}).chunk(2, 2);
  const at::Tensor rotated =
      at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, 2);
  return at::cat({rotated.reshape({x.size(0), turned}), x.slice(1, turned)}, 1);
}

at::Tensor embed(const at::Tensor& table, const at::Tensor& ids, double scale,
                 const at::Tensor& position) {
  const at::Tensor rows = at::embedding(table, ids) * scale;
  return position.defined() ? rows + position.to(rows.scalar_type()) : rows;
}

CrossEntropy linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                                  const at::Tensor& targets, double smoothing, int64_t num_classes,
                                  const at::Tensor& bias, double softcap) {
  at::Tensor logits = at::matmul(x, weight.slice(0, 0, num_classes).t());
  if (bias.defined()) logits = logits + bias.slice(0, 0, num_classes);
  const at::Tensor log_p = at::log_softmax(softcapped(logits, softcap), -1);
  const at::Tensor of_tokens = -log_p.gather(1, targets.unsqueeze(1)).squeeze(1);
  const at::Tensor nll = of_tokens.sum();
  const double each = smoothing / static_cast<double>(num_classes - 1);
  at::Tensor loss = nll * (1 - smoothing - each);
  if (smoothing > 0) loss = loss - each * log_p.sum();
  const at::Tensor of_targets = log_p.detach().gather(1, targets.unsqueeze(1)).squeeze(1);
  const at::Tensor right = of_targets.ge(log_p.detach().amax(1)).sum();
  if (loss.requires_grad()) return {.loss_sum = loss, .nll_sum = nll.detach(), .right_sum = right};
  return {loss, nll, of_tokens.to(at::kDouble), {}, right};
}

CrossEntropy linear_r_drop(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
                           const RDrop& options, const at::Tensor& bias) {
  const CrossEntropy both = reference::linear_cross_entropy(
      x, weight, at::cat({targets, targets}), options.smoothing, options.num_classes, bias);
  at::Tensor logits = at::matmul(x, weight.slice(0, 0, options.num_classes).t());
  if (bias.defined()) logits = logits + bias.slice(0, 0, options.num_classes);
  const auto log_p = at::log_softmax(logits, -1).chunk(2, 0);
  const at::Tensor kl = at::kl_div(log_p[0], log_p[1], at::Reduction::Sum, /*log_target=*/true) +
                        at::kl_div(log_p[1], log_p[0], at::Reduction::Sum, /*log_target=*/true);
  return {.loss_sum = both.loss_sum / 2 + options.alpha / 4 * kl,
          .nll_sum = both.nll_sum / 2,
          .kl_sum = kl.detach() / 2};
}

at::Tensor decode_self_attention(const at::Tensor& q, const at::Tensor& k_new,
                                 const at::Tensor& v_new, at::Tensor& k_cache, at::Tensor& v_cache,
                                 const at::Tensor& lineage, int64_t t, int64_t num_heads,
                                 const DistanceBias& bias, const at::Tensor& first,
                                 double softcap) {
  const at::NoGradGuard no_grad;
  const int64_t lanes = q.size(0), width = q.size(1) / num_heads;
  k_cache.select(0, t).slice(0, 0, lanes).copy_(k_new);
  v_cache.select(0, t).slice(0, 0, lanes).copy_(v_new);
  // The new step lies in the lane's own slot, whether or not the table says so already.
  at::Tensor slots = lineage.slice(0, 0, lanes).slice(1, 0, t + 1).to(at::kLong).clone();
  slots.select(1, t).copy_(at::arange(lanes, slots.options()));
  const at::Tensor steps = at::arange(t + 1, slots.options()).unsqueeze(0);
  at::Tensor before;  // [L, steps]: in front of a lane's history
  if (first.defined()) before = steps < first.to(at::kLong).unsqueeze(1);
  const auto history = [&](const at::Tensor& cache) {
    const int64_t kv_heads = cache.size(2) / width;
    at::Tensor rows = cache.index({steps, slots});
    // What was never written may be no number, and 0 times that is none either.
    if (before.defined()) rows = rows.masked_fill(before.unsqueeze(2), 0);
    const at::Tensor heads = rows.view({lanes, t + 1, kv_heads, width}).transpose(1, 2);
    return kv_heads == num_heads ? heads : heads.repeat_interleave(num_heads / kv_heads, 1);
  };
  const at::Tensor query = q.reshape({lanes, num_heads, 1, width});
  at::Tensor scores =
      at::matmul(query, history(k_cache).transpose(2, 3)) / std::sqrt(static_cast<double>(width));
  scores = softcapped(scores, softcap);
  if (bias.active()) scores = scores + bias_of_step(bias, t).unsqueeze(-2).to(scores.scalar_type());
  if (before.defined()) {
    scores = scores.masked_fill(before.view({lanes, 1, 1, t + 1}),
                                -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), history(v_cache)).reshape({lanes, q.size(1)});
}

double sum_of_squares(const at::Tensor& flat) {
  // Chunks bound the memory of the widened copy and fix the order of summation.
  constexpr int64_t kBlock = int64_t{1} << 20;
  double sum = 0;
  for (int64_t begin = 0; begin < flat.numel(); begin += kBlock)
    sum += flat.slice(0, begin, std::min(begin + kBlock, flat.numel()))
               .to(at::kDouble)
               .square()
               .sum()
               .item<double>();
  return sum;
}

std::vector<double> sum_of_squares_blocks(const at::Tensor& flat) {
  std::vector<double> sums;
  for (int64_t begin = 0; begin < flat.numel(); begin += kSumOfSquaresBlock)
    sums.push_back(
        sum_of_squares(flat.slice(0, begin, std::min(begin + kSumOfSquaresBlock, flat.numel()))));
  return sums;
}

}  // namespace stretto::kernels::reference
