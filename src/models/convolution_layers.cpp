#include "models/convolution_layers.h"

#include "kernels/convolution/convolution.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// In front of a gate, which keeps a quarter of the variance (section 3.5).
constexpr double kGainOfGated = 4.0;

/// The shell of rows, as a Transformer's without a last norm.
TransformerPart row_shell_of(const ConvStackOptions& options) {
  TransformerPart part({}, {});
  part.norm = "post";
  part.positions = options.positions;
  part.max_positions = options.max_positions;
  return part;
}

}  // namespace

nn::TimeConvolution make_linear(const nn::Init& init, int64_t in, int64_t out,
                                const ConvStackOptions& options, double kept) {
  return nn::TimeConvolution(
      init, in, out,
      nn::TimeConvolutionOptions{.kernel = 1, .gain = kept, .weight_norm = options.weight_norm});
}

ConvBlockImpl::ConvBlockImpl(const nn::Init& init, const ConvLayerSizes& sizes,
                             const ConvStackOptions& options) {
  if (sizes.in != sizes.channels) {
    projection = register_module(
        "projection", make_linear(init.child("projection"), sizes.in, sizes.channels, options));
  }
  convolution = register_module(
      "convolution",
      nn::TimeConvolution(init.child("convolution"), sizes.in, 2 * sizes.channels,
                          nn::TimeConvolutionOptions{.kernel = sizes.kernel,
                                                     .gain = kGainOfGated * options.kept(),
                                                     .weight_norm = options.weight_norm}));
  adapter = nn::make_adapter(*this, init, sizes.channels);
}

ConvBlockWeights ConvBlockImpl::effective() const {
  ConvBlockWeights weights{.projection = {}, .convolution = convolution->effective()};
  if (projection) weights.projection = projection->effective();
  return weights;
}

at::Tensor ConvBlockImpl::residual(const at::Tensor& x, const ConvBlockWeights& weights) const {
  return projection ? projection->forward(x, weights.projection) : x;
}

at::Tensor ConvBlockImpl::gate(const at::Tensor& convolved) const {
  // The bias of the convolution joins the gate in one pass over [N, 2 C].
  const at::Tensor gated =
      nn::watch(*this, kernels::glu(nn::watch(*convolution, convolved), convolution->bias, {}));
  return nn::adapted(adapter, gated);
}

at::Tensor ConvBlockImpl::forward(const at::Tensor& x, const ConvBlockWeights& weights,
                                  const kernels::TimeWindow& window,
                                  const kernels::Dropout& dropout) const {
  return gate(kernels::time_convolution(kernels::dropout(x, dropout), weights.convolution.weight,
                                        {}, window));
}

ConvShell::ConvShell(torch::nn::Module& owner, const PartSetup& setup,
                     const ConvStackOptions& options, int64_t out_width)
    : rows(owner, setup, row_shell_of(options), convolutional_embedding()) {
  in = owner.register_module("in", make_linear(setup.init.child("in"), setup.d_model,
                                               options.layers.front().in, options, options.kept()));
  out = owner.register_module(
      "out",
      make_linear(setup.init.child("out"), options.layers.back().channels, out_width, options));
}

}  // namespace stretto::models
