#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "models/light_convolution_options.h"
#include "models/transformer_layers.h"
#include "nn/counted.h"

/// Lightweight and dynamic convolutions (Wu et al. 2019, arXiv:1901.10430, section 3): what stands
/// in the place of a Transformer layer's self-attention.
///
/// Shape letters: N rows of all sequences, D model width, H heads, K taps.
namespace stretto::models {

/// What one stack is built from, and how its convolutions differ from self-attention.
struct LightPart : TransformerPart {
  bool predicts_filters = false;
  bool glu = true;
  double input_dropout = 0.1, weight_dropout = 0.1;
  std::vector<double> kernels;

  template <class O>  // an encoder's or a decoder's options
  static LightPart of(const O& options) {
    LightPart part;
    part.stack = {.num_layers = options.num_layers,
                  .num_heads = options.num_heads,
                  .ffn_dim = options.ffn_dim};
    part.norm = options.norm;
    part.activation = options.activation;
    part.positions = options.positions;
    part.max_positions = options.max_positions;
    part.dropout = options.dropout;
    part.activation_dropout = options.activation_dropout;
    part.predicts_filters = O::predicts_filters;
    part.glu = options.glu;
    part.input_dropout = options.input_dropout;
    part.weight_dropout = options.weight_dropout;
    part.kernels = options.kernels;
    return part;
  }

 private:
  LightPart() : TransformerPart({}, {}) {}
};

/// Dropout of a convolution beside that of LayerDropout, bound to one forward pass.
struct LightDropout {
  kernels::Dropout input;    ///< of the projections in front
  kernels::Dropout filters;  ///< after their softmax

  static LightDropout of(const LightPart& part, const nn::DropoutSource& source,
                         uint64_t first_site, size_t layer);
};

/// out(convolution(glu(in(dropout(x))))), each head's softmax-normalised filter shared by D / H
/// channels.
///
///     light:    `filters` [H, K]: one filter a head
///     dynamic:  `filters.weight` [H K, D]: row n has the filters filters(glu(in(x)))[n]
///
/// A module has its projections apart from the convolution between them, because decoding puts a
/// cache in that place.
class LightConvolutionImpl : public torch::nn::Module, public nn::Counted {
 public:
  LightConvolutionImpl(const nn::Init& init, const LightPart& part, int64_t d_model,
                       int64_t kernel);

  /// How rows are weighed by filters [H, K], or by predicted ones [N, H K].
  struct Pass {
    std::function<at::Tensor(const at::Tensor& rows, const at::Tensor& filters)> weigh;
    kernels::Dropout input = {};
  };
  at::Tensor forward(const at::Tensor& x, const Pass& pass) const;

  /// Weighs whole sequences.
  Pass over(const kernels::Offsets& offsets, kernels::Border border,
            const LightDropout& dropout) const;

  /// Those of one row's window with its filters, in each channel; maps are modules of their own.
  double operations() const override;

  int64_t kernel() const { return kernel_; }
  int64_t num_heads() const { return num_heads_; }
  bool predicts() const { return bool(predictor); }

  nn::Linear in{nullptr}, out{nullptr};
  at::Tensor filters;             ///< [H, K]; undefined where rows predict their own
  nn::Linear predictor{nullptr};  ///< registered as `filters`

 private:
  int64_t num_heads_, kernel_;
  bool gated_;
};
TORCH_MODULE(LightConvolution);

/// Registers the layers of `part` below `owner` as layers.0, layers.1, …
/// Layer: constructible from (Init, LightPart, d_model, kernel).
template <class Layer>
std::vector<Layer> make_light_layers(torch::nn::Module& owner, const PartSetup& setup,
                                     const LightPart& part) {
  std::vector<Layer> layers;
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < part.stack.num_layers; ++i) {
    layers.push_back(Layer(setup.init.child("layers").child(std::to_string(i)), part, setup.d_model,
                           number_of_layer(part.kernels, i, 1)));
    list->push_back(layers.back());
  }
  owner.register_module("layers", list);
  return layers;
}

}  // namespace stretto::models
