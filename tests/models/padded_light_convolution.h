#pragma once

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "data/pairs/pair_columns.h"
#include "models/encoder.h"
#include "models/packed.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models::testing {

/// What distinguishes one stack of lightweight or dynamic convolutions from another.
struct LightForm {
  bool predicts;
  std::string norm;
  bool glu;
  std::string activation = "relu";
};

/// Lightweight and dynamic convolutions as plain as can be, in two layers of four heads: rectangles
/// [B, T, D], masks, fp64, ATen only. It reads the parameters of the part under test by name.
class PaddedLight {
 public:
  PaddedLight(torch::nn::Module& part, LightForm which) : which_(std::move(which)) {
    for (const auto& item : part.named_parameters()) parameters_[item.key()] = item.value();
  }

  at::Tensor encode(const data::PackedTokens& tokens) {
    const Rectangle shape(tokens);
    const at::Tensor mask = shape.mask(at::kDouble).unsqueeze(2);
    at::Tensor x = embed(tokens, shape);
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      x = around(x, layer + "convolution_residual", [&](const at::Tensor& h) {
        return convolution(h, layer + "convolution.", mask, /*causal=*/false);
      });
      x = around(x, layer + "ffn_residual",
                 [&](const at::Tensor& h) { return feed_forward(h, layer + "ffn."); });
    }
    return shape.rows(finish(x));
  }

  at::Tensor decode(const data::Batch& batch, const Encoded& memory) {
    const data::PackedTokens tokens =
        shift_right(data::target(batch), stretto::testing::kSpecials.bos);
    const Rectangle shape(tokens), of_source(data::source(batch));
    const at::Tensor mask = shape.mask(at::kDouble).unsqueeze(2);
    const at::Tensor keys = of_source.of(memory.keys), values = of_source.of(memory.attended());
    const at::Tensor hidden = of_source.mask(at::kDouble).eq(0);
    at::Tensor x = embed(tokens, shape);
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      x = around(x, layer + "convolution_residual", [&](const at::Tensor& h) {
        return convolution(h, layer + "convolution.", mask, /*causal=*/true);
      });
      x = around(x, layer + "cross_residual", [&](const at::Tensor& h) {
        return attention(h, layer + "cross_attention.", {keys, values, hidden});
      });
      x = around(x, layer + "ffn_residual",
                 [&](const at::Tensor& h) { return feed_forward(h, layer + "ffn."); });
    }
    return shape.rows(finish(x));
  }

 private:
  static constexpr int64_t kHeads = 4;

  struct Memory {
    at::Tensor keys, values, hidden;
  };

  const at::Tensor& get(const std::string& name) { return parameters_.at(name); }

  at::Tensor embed(const data::PackedTokens& tokens, const Rectangle& shape) {
    const at::Tensor ids = shape.of(at::tensor(tokens.values, at::kLong));
    return at::embedding(get("embedding.weight"), ids) * std::sqrt(kWidth) +
           get("positions.weight").slice(0, 0, ids.size(1));
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) {
    return at::linear(x, get(name + ".weight"), get(name + ".bias"));
  }

  at::Tensor normed(const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {kWidth}, get(name + ".weight"), get(name + ".bias"), 1e-5);
  }

  template <class Part>
  at::Tensor around(const at::Tensor& x, const std::string& name, Part part) {
    if (which_.norm == "pre") return x + part(normed(x, name + ".norm"));
    return normed(x + part(x), name + ".norm");
  }

  at::Tensor finish(const at::Tensor& x) {
    return which_.norm == "pre" ? normed(x, "final_norm") : x;
  }

  at::Tensor feed_forward(const at::Tensor& x, const std::string& name) {
    const at::Tensor inner = linear(x, name + "up");
    const at::Tensor active = which_.activation == "silu"        ? at::silu(inner)
                              : which_.activation == "gelu_tanh" ? at::gelu(inner, "tanh")
                                                                 : at::relu(inner);
    return linear(active, name + "down");
  }

  at::Tensor convolution(const at::Tensor& x, const std::string& name, const at::Tensor& mask,
                         bool causal) {
    at::Tensor rows = linear(x, name + "in");
    if (which_.glu) rows = at::glu(rows, 2);
    const int64_t b = rows.size(0), t = rows.size(1);
    const at::Tensor raw = which_.predicts ? at::linear(rows, get(name + "filters.weight"))
                                           : get(name + "filters").flatten();
    const int64_t kernel = raw.size(-1) / kHeads;
    const at::Tensor filters =
        at::softmax(raw.expand({b, t, kHeads * kernel}).reshape({b, t, kHeads, 1, kernel}), -1);
    const int64_t left = causal ? kernel - 1 : (kernel - 1) / 2;
    const at::Tensor wide =
        at::constant_pad_nd((rows * mask).transpose(1, 2), {left, kernel - 1 - left});
    const at::Tensor windows = wide.unfold(2, kernel, 1).transpose(1, 2);  // [B, T, D, K]
    const at::Tensor split = windows.reshape({b, t, kHeads, kWidth / kHeads, kernel});
    return linear((split * filters).sum(-1).flatten(2), name + "out");
  }

  at::Tensor attention(const at::Tensor& x, const std::string& name, const Memory& memory) {
    const auto weights = get(name + "kv.weight").chunk(2), biases = get(name + "kv.bias").chunk(2);
    const auto heads = [](const at::Tensor& rows) {
      return rows.view({rows.size(0), rows.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const at::Tensor q = heads(linear(x, name + "q"));
    const at::Tensor k = heads(at::linear(memory.keys, weights[0], biases[0]));
    const at::Tensor v = heads(at::linear(memory.values, weights[1], biases[1]));
    const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(kWidth / kHeads);
    const at::Tensor shares =
        at::softmax(scores.masked_fill(memory.hidden.unsqueeze(1).unsqueeze(1), -INFINITY), -1);
    return linear(at::matmul(shares, v).transpose(1, 2).flatten(2), name + "out");
  }

  LightForm which_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing
