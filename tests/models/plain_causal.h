#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "data/batch.h"
#include "kernels/kernels.h"
#include "models/causal_options.h"
#include "nn/rotary.h"

/// A second language model with a Transformer, as plain and slow as can be: one sequence at a time,
/// masks, ATen only. It reads the parameters of the model under test by name.
namespace stretto::models::testing {

class PlainCausal {
 public:
  PlainCausal(const CausalTransformerOptions& options, const torch::nn::Module& model)
      : options_(options), sizes_(sizes_of(options)) {
    for (const auto& item : model.named_parameters()) parameters_[item.key()] = item.value();
  }

  /// Logits [N, V] behind each token of these sequences.
  at::Tensor logits(const data::PackedTokens& tokens) const {
    const at::Tensor behind = rows(tokens);
    const at::Tensor output =
        parameters_.at(options_.tie_embeddings ? "decoder.embedding.weight" : "output.weight");
    at::Tensor scores = torch::matmul(behind, output.t());
    if (options_.output_bias) scores = scores + parameters_.at("output.bias");
    return bent(scores, options_.logit_softcap);
  }

  /// Rows [N, D] in front of the output projection.
  at::Tensor rows(const data::PackedTokens& tokens) const {
    std::vector<at::Tensor> all;
    for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
      const int64_t begin = tokens.offsets[static_cast<size_t>(i)];
      const std::vector<int64_t> ids(tokens.values.begin() + begin,
                                     tokens.values.begin() + begin + tokens.length(i));
      if (!ids.empty()) all.push_back(sequence(torch::tensor(ids, torch::kLong)));
    }
    return torch::cat(all);
  }

 private:
  static at::Tensor bent(const at::Tensor& x, double cap) {
    return cap > 0 ? cap * torch::tanh(x / cap) : x;
  }

  at::Tensor sequence(const at::Tensor& ids) const {
    const int64_t length = ids.size(0);
    at::Tensor x = parameters_.at("decoder.embedding.weight").index({ids});
    if (options_.embedding_scale == "sqrt") x = x * std::sqrt(static_cast<double>(sizes_.d_model));
    if (options_.positions == "learned") {
      x = x + parameters_.at("decoder.positions.weight").narrow(0, 0, length);
    }
    for (int64_t i = 0; i < sizes_.num_layers; ++i) {
      const std::string layer = "decoder.layers." + std::to_string(i) + ".";
      const auto self = [&](const at::Tensor& h) { return attention(h, layer, i); };
      const auto inner = [&](const at::Tensor& h) { return feed_forward(h, layer + "ffn."); };
      if (options_.parallel_residual) {
        const at::Tensor h = norm(x, layer + "residual.norm");
        x = x + self(h) + inner(h);
        continue;
      }
      x = residual(x, layer + "self_residual.norm", self);
      x = residual(x, layer + "ffn_residual.norm", inner);
    }
    return options_.norm == "post" ? x : norm(x, "decoder.final_norm");
  }

  template <class Part>
  at::Tensor residual(const at::Tensor& x, const std::string& name, Part part) const {
    if (options_.norm == "pre") return x + part(norm(x, name));
    if (options_.norm == "res_post") return x + norm(part(x), name);
    return norm(x + part(x), name);
  }

  at::Tensor root_normed(const at::Tensor& x, const at::Tensor& gain) const {
    return x / torch::sqrt(x.square().mean(-1, true) + options_.norm_epsilon) * gain;
  }

  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    const at::Tensor& gain = parameters_.at(name + ".weight");
    if (options_.norm_layer == "rms_norm") return root_normed(x, gain);
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor y =
        centred / torch::sqrt(centred.square().mean(-1, true) + options_.norm_epsilon) * gain;
    return options_.norm_bias ? y + parameters_.at(name + ".bias") : y;
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const auto bias = parameters_.find(name + ".bias");
    const at::Tensor y = torch::matmul(x, parameters_.at(name + ".weight").t());
    return bias == parameters_.end() ? y : y + bias->second;
  }

  at::Tensor feed_forward(const at::Tensor& x, const std::string& name) const {
    const at::Tensor inner = linear(x, name + "up");
    const std::string& kind = options_.activation;
    at::Tensor active;
    if (options_.is_gated()) {
      const auto parts = inner.chunk(2, -1);
      active = (kind == "swiglu" ? torch::silu(parts[0]) : torch::gelu(parts[0])) * parts[1];
    } else if (kind == "relu_squared") {
      active = torch::relu(inner) * torch::relu(inner);
    } else if (kind == "gelu_tanh") {
      active = torch::gelu(inner, "tanh");
    } else if (kind == "silu") {
      active = torch::silu(inner);
    } else {
      active = kind == "gelu" ? torch::gelu(inner) : torch::relu(inner);
    }
    return linear(active, name + "down");
  }

  /// Frequencies of linear scaling and of none; those of other kinds have a test of their own
  /// (tests/nn/rotary_test.cpp), and are taken from there.
  at::Tensor turned(const at::Tensor& heads) const {  // [H, T, W]
    const int64_t width = heads.size(2);
    const std::string& scaling = options_.rope.scaling;
    const double factor = scaling == "linear" ? options_.rope.factor : 1;
    at::Tensor w = torch::pow(options_.rope.base,
                              torch::arange(width / 2, torch::kDouble) * (-2.0 / double(width)));
    double longer = 1;
    if (scaling == "llama3" || scaling == "yarn") {
      const kernels::RotaryAngles angles = nn::rotary_angles(options_.rope, width);
      w = angles.frequencies;
      longer = angles.factor;
    }
    const at::Tensor angle =
        torch::outer(torch::arange(heads.size(1), torch::kDouble) / factor, w).unsqueeze(0);
    const auto halves = heads.chunk(2, -1);
    return longer * torch::cat({halves[0] * angle.cos() - halves[1] * angle.sin(),
                                halves[1] * angle.cos() + halves[0] * angle.sin()},
                               -1);
  }

  at::Tensor attention(const at::Tensor& x, const std::string& layer, int64_t number) const {
    const int64_t heads = sizes_.num_heads,
                  kv_heads = options_.num_kv_heads > 0 ? options_.num_kv_heads : heads,
                  width = options_.head_dim > 0 ? options_.head_dim : sizes_.d_model / heads,
                  length = x.size(0);
    const std::string name = layer + "self_attention.";
    const auto parts =
        linear(x, name + "qkv")
            .split_with_sizes({heads * width, kv_heads * width, kv_heads * width}, 1);
    const auto split = [&](const at::Tensor& part, int64_t count) {
      return part.reshape({length, count, width}).transpose(0, 1);
    };
    at::Tensor q = split(parts[0], heads), k = split(parts[1], kv_heads),
               v = split(parts[2], kv_heads);
    if (options_.qk_norm) {
      q = root_normed(q, parameters_.at(name + "q_norm.weight"));
      k = root_normed(k, parameters_.at(name + "k_norm.weight"));
    }
    if (options_.positions == "rotary") {
      q = turned(q);
      k = turned(k);
    }
    k = k.repeat_interleave(heads / kv_heads, 0);
    v = v.repeat_interleave(heads / kv_heads, 0);
    at::Tensor scores = torch::matmul(q, k.transpose(1, 2)) / std::sqrt(double(width));
    scores = bent(scores, options_.attention_softcap);
    const int64_t every = options_.full_attention_every;
    const bool local = options_.sliding_window > 0 && (every == 0 || (number + 1) % every != 0);
    at::Tensor hidden = torch::zeros({length, length}, torch::kBool);
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j)
        hidden[i][j] = j > i || (local && j <= i - options_.sliding_window);
    if (options_.positions == "alibi") {
      // Heads of these tests are powers of two.
      const at::Tensor slopes =
          torch::pow(2.0, torch::arange(1, heads + 1, torch::kDouble) * (-8.0 / double(heads)));
      const at::Tensor places = torch::arange(length, torch::kDouble);
      scores = scores - slopes.view({heads, 1, 1}) * (places.unsqueeze(1) - places).abs();
    }
    const at::Tensor weights =
        torch::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    return linear(torch::matmul(weights, v).transpose(0, 1).reshape({length, heads * width}),
                  name + "out");
  }

  CausalTransformerOptions options_;
  CausalSizes sizes_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing
