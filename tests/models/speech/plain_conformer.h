#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/speech/conformer_options.h"

namespace stretto::models::testing::speech {

/// A Conformer's encoder from its formulas, one utterance after the other, of libtorch's operators
/// and by the names of tensors alone; without dropout. Batch norm goes by the rows of all
/// utterances in training, else by the running statistics.
class PlainConformer {
 public:
  using Sequences = std::vector<at::Tensor>;

  PlainConformer(std::map<std::string, at::Tensor> tensors, const ConformerOptions& options,
                 bool training)
      : tensors_(std::move(tensors)),
        options_(options),
        sizes_(sizes_of(options)),
        training_(training) {}

  /// Frames [T, F] of each utterance -> rows [T', D] of each.
  Sequences forward(const Sequences& frames) const {
    Sequences x;
    for (const at::Tensor& one : frames) x.push_back(subsampled(one));
    for (int64_t i = 0; i < sizes_.num_layers; ++i) x = layer(i, x);
    return x;
  }

 private:
  const at::Tensor& tensor(const std::string& name) const { return tensors_.at(name); }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const {
    const auto bias = tensors_.find(name + ".bias");
    return at::linear(x, tensor(name + ".weight"),
                      bias == tensors_.end() ? at::Tensor() : bias->second);
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) const {
    return at::layer_norm(x, {x.size(-1)}, tensor(name + ".weight"), tensor(name + ".bias"));
  }

  at::Tensor subsampled(const at::Tensor& frames) const {
    if (frames.size(0) == 0) return frames.new_zeros({0, sizes_.d_model});
    const bool has_planes = options_.subsampling == "conv2d";
    at::Tensor x = has_planes ? frames.view({1, 1, frames.size(0), -1}) : frames.t().unsqueeze(0);
    for (int64_t i = 0; i < num_subsamplings(options_); ++i) {
      const std::string name = "subsampling.convolutions." + std::to_string(i);
      const at::Tensor &weight = tensor(name + ".weight"), &bias = tensor(name + ".bias");
      if (has_planes) {
        x = at::relu(at::conv2d(x, weight, bias, 2, 1));
      } else {
        const at::Tensor filters = weight.view({sizes_.d_model, 3, -1}).permute({0, 2, 1});
        x = at::relu(at::conv1d(x, filters, bias, 2, 1));
      }
    }
    const at::Tensor rows =
        has_planes ? x.permute({0, 2, 3, 1}).reshape({x.size(2), -1}) : x.squeeze(0).t();
    return linear("subsampling.output", rows);
  }

  Sequences layer(int64_t number, const Sequences& x) const {
    const std::string name = "layers." + std::to_string(number) + ".";
    Sequences middle, convolved;
    for (const at::Tensor& one : x) {
      const at::Tensor y = one + 0.5 * fed(name + "ffn1", one);
      middle.push_back(y + attended(name, norm(name + "attention_norm", y)));
      convolved.push_back(
          filtered(name + "convolution", norm(name + "convolution_norm", middle.back())));
    }
    convolved = normed(name + "convolution.norm", convolved);
    Sequences out;
    for (size_t i = 0; i < x.size(); ++i) {
      const at::Tensor y =
          middle[i] + linear(name + "convolution.pointwise_out", at::silu(convolved[i]));
      out.push_back(norm(name + "final_norm", y + 0.5 * fed(name + "ffn2", y)));
    }
    return out;
  }

  at::Tensor fed(const std::string& name, const at::Tensor& x) const {
    return linear(name + ".down", at::silu(linear(name + ".up", norm(name + "_norm", x))));
  }

  at::Tensor filtered(const std::string& name, const at::Tensor& x) const {
    if (x.size(0) == 0) return x;
    const at::Tensor gated = at::glu(linear(name + ".pointwise_in", x), 1);
    const at::Tensor filters = tensor(name + ".depthwise.weight").unsqueeze(1);
    return at::conv1d(gated.t().unsqueeze(0), filters, {}, 1, sizes_.kernel / 2, 1, sizes_.d_model)
        .squeeze(0)
        .t();
  }

  Sequences normed(const std::string& name, const Sequences& x) const {
    Sequences out;
    if (options_.convolution_norm == "layer_norm") {
      for (const at::Tensor& one : x) out.push_back(norm(name, one));
      return out;
    }
    const at::Tensor all = at::cat(x);
    const at::Tensor mean = training_ ? all.mean(0) : tensor(name + ".running_mean");
    const at::Tensor var =
        training_ ? (all - mean).square().mean(0) : tensor(name + ".running_var");
    for (const at::Tensor& one : x) {
      out.push_back((one - mean) / (var + options_.norm_epsilon).sqrt() * tensor(name + ".weight") +
                    tensor(name + ".bias"));
    }
    return out;
  }

  /// sin and cos of (i - j) 10000^(-2 k / D) for rows i and j, [T, T, D].
  at::Tensor distances(int64_t length, const at::Tensor& like) const {
    const int64_t half = sizes_.d_model / 2;
    at::Tensor all = at::empty({length, length, 2 * half}, at::kDouble);
    auto numbers = all.accessor<double, 3>();
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j < length; ++j) {
        for (int64_t k = 0; k < half; ++k) {
          const double angle =
              static_cast<double>(i - j) *
              std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(half));
          numbers[i][j][k] = std::sin(angle);
          numbers[i][j][half + k] = std::cos(angle);
        }
      }
    }
    return all.to(like.scalar_type());
  }

  /// Pairs (k, k + W / 2) of a head's columns turned by the row's number; x [T, H, W].
  static at::Tensor turned(const at::Tensor& x) {
    const int64_t half = x.size(2) / 2;
    const at::Tensor power = at::arange(half, at::kDouble) / static_cast<double>(half);
    const at::Tensor angle = at::outer(at::arange(x.size(0), at::kDouble), at::pow(10000.0, -power))
                                 .to(x.scalar_type())
                                 .unsqueeze(1);
    const at::Tensor a = x.narrow(2, 0, half), b = x.narrow(2, half, half);
    return at::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, 2);
  }

  at::Tensor attended(const std::string& layer, const at::Tensor& x) const {
    const int64_t length = x.size(0), heads = sizes_.num_heads, width = sizes_.d_model / heads;
    if (length == 0) return x;
    const std::vector<at::Tensor> parts = linear(layer + "attention.qkv", x).chunk(3, 1);
    const auto of_heads = [&](const at::Tensor& part) { return part.view({-1, heads, width}); };
    at::Tensor q = of_heads(parts[0].contiguous()), k = of_heads(parts[1].contiguous());
    at::Tensor scores;
    if (options_.positions == "rotary") {
      scores = at::einsum("ihw,jhw->hij", {turned(q), turned(k)});
    } else {
      const std::string name = layer + "positions.";
      const at::Tensor vectors =
          linear(name + "projection", distances(length, x)).view({length, length, heads, width});
      scores = at::einsum("ihw,jhw->hij", {q + of_heads(tensor(name + "content_bias")), k}) +
               at::einsum("ihw,ijhw->hij", {q + of_heads(tensor(name + "position_bias")), vectors});
    }
    const at::Tensor weights = (scores / std::sqrt(static_cast<double>(width))).softmax(2);
    const at::Tensor values = of_heads(parts[2].contiguous());
    const at::Tensor sums = at::einsum("hij,jhw->ihw", {weights, values});
    return linear(layer + "attention.out", sums.reshape({length, sizes_.d_model}));
  }

  std::map<std::string, at::Tensor> tensors_;
  ConformerOptions options_;
  ConformerSizes sizes_;
  bool training_;
};

}  // namespace stretto::models::testing::speech
