#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/pairs/pair_columns.h"
#include "models/seq2seq_options.h"

/// A second Transformer, as plain and slow as can be: padded rectangles [B, T, D], masks, ATen
/// only. It reads the parameters of the model under test by name.
namespace stretto::models::testing {

class PaddedTransformer {
 public:
  PaddedTransformer(const Seq2SeqOptions& options, torch::nn::Module& model, int64_t num_classes)
      : options_(options), num_classes_(num_classes), training_(model.is_training()) {
    for (const auto& item : model.named_parameters()) parameters_[item.key()] = item.value();
    for (const auto& item : model.named_buffers()) parameters_[item.key()] = item.value();
  }

  /// Log probabilities [B, Tt, num_classes], teacher-forced.
  at::Tensor log_probs(const data::Batch& batch) {
    const at::Tensor src = padded(data::source(batch), false),
                     tgt = padded(data::target(batch), true);
    real_ = {{"encoder", src != 0}, {"decoder", tgt != 0}};
    const at::Tensor src_mask = (src == 0).unsqueeze(1).unsqueeze(1);  // [B, 1, 1, Ts]
    at::Tensor memory = embed("encoder", src);
    for (int64_t i = 0; i < options_.encoder.as<StackOptions>().num_layers; ++i) {
      const std::string layer = "encoder.layers." + std::to_string(i) + ".";
      const int64_t heads = options_.encoder.as<StackOptions>().num_heads;
      const auto attend_self = [&](const at::Tensor& h) {
        return self(h, layer + "self_attention", heads, src_mask);
      };
      if (options_.parallel_residual) {
        const at::Tensor h = norm(memory, layer + "residual.norm");
        memory = memory + attend_self(h) + ffn(h, layer + "ffn");
        continue;
      }
      memory = residual(memory, layer + "self_residual", attend_self);
      memory = residual(memory, layer + "ffn_residual",
                        [&](const at::Tensor& h) { return ffn(h, layer + "ffn"); });
    }
    memory = finish(memory, "encoder");

    const at::Tensor rows = decoded(tgt, memory, src_mask);
    const at::Tensor logits = torch::matmul(rows, output().t());
    return torch::log_softmax(logits.narrow(-1, 0, num_classes_), -1);
  }

  /// Label-smoothed loss summed over the real target tokens, fairseq's form.
  at::Tensor loss(const data::Batch& batch, double smoothing) {
    const at::Tensor all = log_probs(batch);
    at::Tensor sum = torch::zeros({}, all.options());
    const double e = smoothing / static_cast<double>(num_classes_ - 1);
    for (int64_t i = 0; i < batch.num_sequences(); ++i) {
      for (int64_t t = 0; t < data::target(batch).length(i); ++t) {
        const at::Tensor row = all[i][t];
        sum = sum - (1 - smoothing - e) *
                        row[data::target(batch).values[data::target(batch).offsets[i] + t]];
        sum = sum - e * row.sum();
      }
    }
    return sum;
  }

  /// Rows [B, Tt, D] of a decoder without memory, whose parameters are named `decoder.…`.
  at::Tensor rows_without_memory(const data::PackedTokens& targets) {
    const at::Tensor tgt = padded(targets, true);
    real_ = {{"decoder", tgt != 0}};
    return decoded(tgt, {}, {});
  }

 private:
  /// Rows of the decoder [B, Tt, D]. @param memory  [B, Ts, D]; undefined = it has none
  at::Tensor decoded(const at::Tensor& tgt, const at::Tensor& memory, const at::Tensor& src_mask) {
    const at::Tensor future = torch::ones({tgt.size(1), tgt.size(1)}, torch::kBool).triu(1);
    at::Tensor x = embed("decoder", tgt);
    for (int64_t i = 0; i < options_.decoder.as<StackOptions>().num_layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i) + ".";
      const int64_t heads = options_.decoder.as<StackOptions>().num_heads;
      const auto attend_self = [&](const at::Tensor& h) {
        return self(h, layer + "self_attention", heads, future);
      };
      const auto attend_memory = [&](const at::Tensor& h) {
        const std::string name = layer + "cross_attention.";
        const auto kv = linear(memory, name + "kv").chunk(2, -1);
        return linear(attend(linear(h, name + "q"), kv[0], kv[1], heads, src_mask, {}),
                      name + "out");
      };
      if (options_.parallel_residual) {
        const at::Tensor h = norm(x, layer + "residual.norm");
        x = x + attend_self(h);
        if (memory.defined()) x = x + attend_memory(h);
        x = x + ffn(h, layer + "ffn");
        continue;
      }
      x = residual(x, layer + "self_residual", attend_self);
      if (memory.defined()) x = residual(x, layer + "cross_residual", attend_memory);
      x = residual(x, layer + "ffn_residual",
                   [&](const at::Tensor& h) { return ffn(h, layer + "ffn"); });
    }
    return finish(x, "decoder");
  }

  static at::Tensor padded(const data::PackedTokens& tokens, bool shift) {
    at::Tensor ids = torch::zeros({tokens.num_sequences(), tokens.max_length()}, torch::kLong);
    for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
      for (int64_t t = 0; t < tokens.length(i); ++t) {
        const int64_t at = tokens.offsets[i] + t - (shift ? 1 : 0);
        ids[i][t] = shift && t == 0 ? int64_t{2} : tokens.values[at];
      }
    }
    return ids;
  }

  at::Tensor table(const std::string& stack) {
    return options_.tie_embeddings == "all" ? parameters_.at("embedding.weight")
                                            : parameters_.at(stack + ".embedding.weight");
  }
  at::Tensor output() {
    return options_.tie_embeddings == "none" ? parameters_.at("output.weight") : table("decoder");
  }

  at::Tensor embed(const std::string& stack, const at::Tensor& ids) {
    const int64_t d = options_.d_model, length = ids.size(1);
    at::Tensor x = table(stack).index({ids}) * std::sqrt(static_cast<double>(d));
    if (options_.positions == "learned") {
      x = x + parameters_.at(stack + ".positions.weight").narrow(0, 0, length);
    } else if (options_.positions == "sinusoidal") {
      at::Tensor rows = torch::zeros({length, d}, torch::kDouble);
      for (int64_t t = 0; t < length; ++t) {
        for (int64_t j = 0; j < d / 2; ++j) {
          const double w = std::exp(-std::log(10000.0) * double(j) / (double(d) / 2 - 1));
          rows[t][j] = std::sin(double(t + 2) * w);
          rows[t][d / 2 + j] = std::cos(double(t + 2) * w);
        }
      }
      x = x + rows.to(x.scalar_type());
    }
    return x;
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) {
    const auto bias = parameters_.find(name + ".bias");
    const at::Tensor y = torch::matmul(x, parameters_.at(name + ".weight").t());
    return bias == parameters_.end() ? y : y + bias->second;
  }

  /// Statistics of each channel over the real tokens.
  at::Tensor batch_norm(const at::Tensor& x, const std::string& name) {
    at::Tensor mean = parameters_.at(name + ".running_mean");
    at::Tensor var = parameters_.at(name + ".running_var");
    if (training_) {
      const at::Tensor rows = x.index({real_.at(name.substr(0, name.find('.')))});
      mean = rows.mean(0);
      var = (rows - mean).square().mean(0);
    }
    return (x - mean) / torch::sqrt(var + 1e-4) * parameters_.at(name + ".weight") +
           parameters_.at(name + ".bias");
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) {
    if (options_.norm_layer == "batch_norm") return batch_norm(x, name);
    if (options_.norm_layer == "rms_norm") {
      const at::Tensor mean_square = x.square().sum(-1, true) / options_.d_model;
      return x / torch::sqrt(mean_square + 1e-6) * parameters_.at(name + ".weight");
    }
    return torch::layer_norm(x, {options_.d_model}, parameters_.at(name + ".weight"),
                             parameters_.at(name + ".bias"));
  }
  at::Tensor finish(const at::Tensor& x, const std::string& stack) {
    return options_.norm == "post" ? x : norm(x, stack + ".final_norm");
  }

  template <class Part>
  at::Tensor residual(const at::Tensor& x, const std::string& name, Part part) {
    if (options_.norm == "pre") return x + part(norm(x, name + ".norm"));
    if (options_.norm == "res_post") return x + norm(part(x), name + ".norm");
    return norm(x + part(x), name + ".norm");
  }

  at::Tensor ffn(const at::Tensor& x, const std::string& name) {
    const at::Tensor inner = linear(x, name + ".up");
    if (options_.activation == "swiglu") {
      const auto parts = inner.chunk(2, -1);
      return linear(torch::silu(parts[0]) * parts[1], name + ".down");
    }
    return linear(options_.activation == "gelu" ? torch::gelu(inner) : torch::relu(inner),
                  name + ".down");
  }

  at::Tensor self(const at::Tensor& x, const std::string& name, int64_t heads,
                  const at::Tensor& mask) {
    const std::string stack = name.substr(0, name.find('.'));
    const StackOptions& sizes = stack == "encoder" ? options_.encoder.as<StackOptions>()
                                                   : options_.decoder.as<StackOptions>();
    const int64_t kv_heads = sizes.num_kv_heads == 0 ? heads : sizes.num_kv_heads;
    const int64_t d = options_.d_model, e = d / heads * kv_heads;
    auto qkv = linear(x, name + ".qkv").split_with_sizes({d, e, e}, -1);
    if (options_.positions == "rotary") {
      qkv[0] = rotated(qkv[0], heads);
      qkv[1] = rotated(qkv[1], kv_heads);
    }
    const at::Tensor added = options_.positions == "shaw"
                                 ? of_distances(qkv[0], heads, name, stack == "decoder")
                                 : bias(stack, heads, x);
    return linear(attend(qkv[0], qkv[1], qkv[2], heads, mask, added), name + ".out");
  }

  /// Shaw et al. 2018: q . a / sqrt(W) of each pair with the vector of its distance, [B, H, T, T].
  at::Tensor of_distances(const at::Tensor& q, int64_t heads, const std::string& name,
                          bool causal) {
    const at::Tensor& vectors = parameters_.at(name + ".relative_keys.weight");
    const int64_t length = q.size(1), width = q.size(2) / heads, k = options_.max_distance;
    std::vector<at::Tensor> products;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j) {
        const int64_t distance = std::clamp<int64_t>(j - i, -k, causal ? 0 : k);
        const at::Tensor query = q.select(1, i).reshape({q.size(0), heads, width});
        products.push_back(torch::matmul(query, vectors[distance + k]));
      }
    return torch::stack(products).view({length, length, q.size(0), heads}).permute({2, 3, 0, 1}) /
           std::sqrt(static_cast<double>(width));
  }

  /// T5's bucket of a distance: where each begins, as transformers 4.57 numbers them.
  static int64_t bucket(int64_t distance, bool causal) {
    static const std::vector<int64_t> kBothWays{0, 1,  2,  3,  4,  5,  6,  7,
                                                8, 12, 16, 23, 32, 46, 64, 91};
    static const std::vector<int64_t> kBefore{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                              11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                              35, 40, 46, 52, 59, 67, 77, 87, 99, 113};
    const std::vector<int64_t>& begins = causal ? kBefore : kBothWays;
    const int64_t away = causal ? std::max<int64_t>(-distance, 0) : std::abs(distance);
    int64_t found = 0;
    for (size_t i = 0; i < begins.size(); ++i)
      if (away >= begins[i]) found = static_cast<int64_t>(i);
    return found + (!causal && distance > 0 ? 16 : 0);
  }

  /// [H, T, T] where scores have a bias of distances.
  at::Tensor bias(const std::string& stack, int64_t heads, const at::Tensor& x) {
    if (options_.positions != "alibi" && options_.positions != "t5") return {};
    const int64_t length = x.size(1);
    std::vector<at::Tensor> numbers;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t j = 0; j < length; ++j) {
          // Heads of these tests are powers of two.
          const double slope = std::pow(2.0, -8.0 * double(head + 1) / double(heads));
          numbers.push_back(
              options_.positions == "alibi"
                  ? torch::full({}, -slope * std::abs(double(j - i)), x.options())
                  : parameters_.at(
                        stack + ".distance_bias.weight")[bucket(j - i, stack == "decoder")][head]);
        }
    return torch::stack(numbers).view({heads, length, length});
  }

  static at::Tensor rotated(const at::Tensor& x, int64_t heads) {
    const int64_t width = x.size(2) / heads, half = width / 2;
    const at::Tensor w = torch::exp(torch::arange(half, torch::kDouble) *
                                    (-2.0 * std::log(10000.0) / double(width)));
    const at::Tensor angle =
        torch::outer(torch::arange(x.size(1), torch::kDouble), w).to(x.scalar_type()).unsqueeze(1);
    const auto parts = x.view({x.size(0), x.size(1), heads, width}).chunk(2, -1);
    return torch::cat({parts[0] * angle.cos() - parts[1] * angle.sin(),
                       parts[1] * angle.cos() + parts[0] * angle.sin()},
                      -1)
        .reshape(x.sizes());
  }

  static at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           int64_t heads, const at::Tensor& mask, const at::Tensor& bias) {
    const int64_t width = q.size(2) / heads;
    const auto split = [&](const at::Tensor& x) {
      const int64_t own = x.size(2) / width;  // fewer of keys and values, each for several queries
      return x.reshape({x.size(0), x.size(1), own, width})
          .transpose(1, 2)
          .repeat_interleave(heads / own, 1);
    };
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    at::Tensor scores = torch::matmul(split(q), split(k).transpose(2, 3)) * scale;
    if (bias.defined()) scores = scores + bias;
    const at::Tensor weights =
        torch::softmax(scores.masked_fill(mask, -std::numeric_limits<double>::infinity()), -1);
    return torch::matmul(weights, split(v)).transpose(1, 2).reshape(q.sizes());
  }

  Seq2SeqOptions options_;
  int64_t num_classes_;
  bool training_;
  std::map<std::string, at::Tensor> real_;  // [B, T] of each stack: not padding
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing
