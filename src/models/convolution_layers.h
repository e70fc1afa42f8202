#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "models/convolution_options.h"
#include "models/parts.h"
#include "models/transformer_layers.h"
#include "nn/adapter.h"
#include "nn/time_convolution.h"

/// What both sides of ConvS2S are made of (Gehring et al. 2017, arXiv:1705.03122, sections 3.1 to
/// 3.5, with fairseq's order of operators).
///
/// Shape letters: N rows of all sequences, D model width, C channels of a layer.
namespace stretto::models {

/// Width and taps of one layer.
struct ConvLayerSizes {
  int64_t in, channels, kernel;
};

/// What both sides read of their options.
struct ConvStackOptions {
  std::vector<ConvLayerSizes> layers;
  bool weight_norm = true;
  double dropout = 0.1;
  std::string positions = "learned";
  int64_t max_positions = 1024;

  template <class O>  // ConvEncoderOptions, ConvDecoderOptions
  static ConvStackOptions of(const O& options, int64_t d_model) {
    ConvStackOptions stack{.layers = {},
                           .weight_norm = options.weight_norm,
                           .dropout = options.dropout,
                           .positions = options.positions,
                           .max_positions = options.max_positions};
    int64_t in = number_of_layer(options.channels, 0, d_model);
    for (int64_t i = 0; i < options.num_layers; ++i) {
      const int64_t channels = number_of_layer(options.channels, i, d_model);
      stack.layers.push_back({in, channels, number_of_layer(options.kernels, i, 1)});
      in = channels;
    }
    return stack;
  }

  double kept() const { return 1.0 - dropout; }
};

/// (a + b) sqrt(1/2): two addends of one variance give that variance (section 3.5).
inline at::Tensor half_sum(const at::Tensor& a, const at::Tensor& b) {
  return (a + b).mul_(1.0 / std::numbers::sqrt2);
}

/// A linear map whose first weights keep the variance of its input.
/// @param kept  share of the input that dropout keeps
nn::TimeConvolution make_linear(const nn::Init& init, int64_t in, int64_t out,
                                const ConvStackOptions& options, double kept = 1.0);

/// What a block multiplies by: made once for a forward pass, or for all steps of a decoding.
struct ConvBlockWeights {
  nn::TimeConvolutionWeights projection;  ///< undefined where widths are equal
  nn::TimeConvolutionWeights convolution;
};

/// A convolution of twice the width and its gate, and the way around both: x [N, C'] -> [N, C].
/// Where `model.adapter` names the block, the gate's output goes through an adapter (nn/adapter.h);
/// elsewhere `adapter` below stands for nothing.
class ConvBlockImpl : public torch::nn::Module {
 public:
  ConvBlockImpl(const nn::Init& init, const ConvLayerSizes& sizes, const ConvStackOptions& options);

  ConvBlockWeights effective() const;
  /// x itself, or projected to the block's width.
  at::Tensor residual(const at::Tensor& x, const ConvBlockWeights& weights) const;
  /// adapter(glu(convolved + bias)), convolved [N, 2 C] without its bias.
  at::Tensor gate(const at::Tensor& convolved) const;
  /// gate(convolution(dropout(x))) over whole sequences.
  at::Tensor forward(const at::Tensor& x, const ConvBlockWeights& weights,
                     const kernels::TimeWindow& window, const kernels::Dropout& dropout) const;

  int64_t kernel() const { return convolution->kernel(); }

  nn::TimeConvolution projection{nullptr}, convolution{nullptr};
  nn::Adapter adapter{nullptr};  ///< null without one
};
TORCH_MODULE(ConvBlock);

/// A stack's shell: embedding and positions, the map to the first layer's width, and the one from
/// the last. Its modules are children of the encoder or decoder that owns it.
class ConvShell {
 public:
  /// @param out_width  of the rows that leave the stack
  ConvShell(torch::nn::Module& owner, const PartSetup& setup, const ConvStackOptions& options,
            int64_t out_width);

  StackShell rows;
  nn::TimeConvolution in{nullptr}, out{nullptr};
};

/// Registers a layer for each of `options` below `owner` as layers.0, layers.1, …
/// Layer: constructible from (Init, ConvLayerSizes, ConvStackOptions, d_model).
template <class Layer>
std::vector<Layer> make_conv_layers(torch::nn::Module& owner, const PartSetup& setup,
                                    const ConvStackOptions& options) {
  std::vector<Layer> layers;
  torch::nn::ModuleList list;
  for (const ConvLayerSizes& sizes : options.layers) {
    const nn::Init init = setup.init.child("layers").child(std::to_string(layers.size()));
    layers.push_back(Layer(init, sizes, options, setup.d_model));
    list->push_back(layers.back());
  }
  owner.register_module("layers", list);
  return layers;
}

}  // namespace stretto::models
