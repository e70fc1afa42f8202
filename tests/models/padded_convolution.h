#pragma once

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <utility>

#include "data/pairs/pair_columns.h"
#include "models/encoder.h"
#include "models/packed.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models::testing {

/// ConvS2S as plain as can be: rectangles [B, T, C], masks, ATen only. It reads the parameters of
/// the part under test by name, those of LoRA too.
class PaddedConv {
 public:
  PaddedConv(torch::nn::Module& part, int64_t num_layers) : num_layers_(num_layers) {
    for (const auto& item : part.named_parameters()) parameters_[item.key()] = item.value();
    for (const auto& item : part.named_buffers()) parameters_[item.key()] = item.value();
  }

  std::pair<at::Tensor, at::Tensor> encode(const data::PackedTokens& tokens) {
    const Rectangle shape(tokens);
    const at::Tensor e = embed(tokens, shape);
    at::Tensor x = linear(e, "in");
    for (int64_t i = 0; i < num_layers_; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".block.";
      x = half(gated(masked(x, shape), layer, /*causal=*/false) + residual(x, layer));
    }
    const at::Tensor z = linear(x, "out");
    return {shape.rows(z), shape.rows(half(z + e))};
  }

  at::Tensor decode(const data::Batch& batch, const Encoded& memory) {
    const data::PackedTokens tokens =
        shift_right(data::target(batch), stretto::testing::kSpecials.bos);
    const Rectangle shape(tokens), of_source(data::source(batch));
    const at::Tensor keys = of_source.of(memory.keys), values = of_source.of(memory.attended());
    const at::Tensor there = of_source.mask(keys.scalar_type());
    const at::Tensor e = embed(tokens, shape);
    at::Tensor x = linear(e, "in");
    for (int64_t i = 0; i < num_layers_; ++i) {
      const std::string layer = "layers." + std::to_string(i) + ".";
      const at::Tensor h = gated(x, layer + "block.", /*causal=*/true);
      const at::Tensor q = half(linear(h, layer + "attention.query") + e);
      const at::Tensor scores =
          at::matmul(q, keys.transpose(1, 2)).masked_fill(there.eq(0).unsqueeze(1), -INFINITY);
      const at::Tensor seen = at::matmul(at::softmax(scores, -1), values) *
                              there.sum(1).sqrt().unsqueeze(1).unsqueeze(1);
      x = half(half(linear(seen, layer + "attention.out") + h) + residual(x, layer + "block."));
    }
    return shape.rows(linear(x, "out"));
  }

 private:
  static at::Tensor half(const at::Tensor& sum) { return sum / std::numbers::sqrt2; }
  static at::Tensor masked(const at::Tensor& x, const Rectangle& shape) {
    return x * shape.mask(x.scalar_type()).unsqueeze(2);
  }

  at::Tensor embed(const data::PackedTokens& tokens, const Rectangle& shape) {
    const at::Tensor ids = shape.of(at::tensor(tokens.values, at::kLong));
    at::Tensor e = at::embedding(parameters_.at("embedding.weight"), ids);
    if (parameters_.contains("positions.weight")) {
      e = e + parameters_["positions.weight"].slice(0, 0, ids.size(1));
    }
    return masked(e, shape);
  }

  at::Tensor weight(const std::string& name) {
    at::Tensor v = parameters_.at(name + ".weight");
    if (parameters_.contains(name + ".lora_b")) {
      const at::Tensor sum =
          at::matmul(parameters_[name + ".lora_b"], parameters_[name + ".lora_a"]);
      v = v + sum * parameters_.at(name + ".lora_parts")[0][1];
    }
    if (!parameters_.contains(name + ".gain")) return v;
    return v * (parameters_[name + ".gain"] / v.square().sum(1).sqrt()).unsqueeze(1);
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) {
    return at::linear(x, weight(name), parameters_.at(name + ".bias"));
  }

  at::Tensor gated(const at::Tensor& x, const std::string& layer, bool causal) {
    const at::Tensor flat = weight(layer + "convolution");
    const int64_t channels = x.size(2), kernel = flat.size(1) / channels;
    const at::Tensor w = flat.view({flat.size(0), kernel, channels}).permute({0, 2, 1});
    const int64_t left = causal ? kernel - 1 : (kernel - 1) / 2;
    const at::Tensor wide = at::constant_pad_nd(x.transpose(1, 2), {left, kernel - 1 - left});
    const at::Tensor both =
        at::conv1d(wide, w, parameters_.at(layer + "convolution.bias")).transpose(1, 2);
    return at::glu(both, 2);
  }

  at::Tensor residual(const at::Tensor& x, const std::string& layer) {
    return parameters_.contains(layer + "projection.weight") ? linear(x, layer + "projection") : x;
  }

  int64_t num_layers_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace stretto::models::testing
