#include "models/light_convolution_layers.h"

#include <cmath>

#include "nn/watch.h"

namespace stretto::models {

LightDropout LightDropout::of(const LightPart& part, const nn::DropoutSource& source,
                              uint64_t first_site, size_t layer) {
  const uint64_t filters = layer_site(first_site, layer) + LayerDropout::kSelfWeights;
  return {.input = source.at(part.input_dropout, first_site + kLightInputSites + layer),
          .filters = source.at(part.weight_dropout, filters)};
}

LightConvolutionImpl::LightConvolutionImpl(const nn::Init& init, const LightPart& part,
                                           int64_t d_model, int64_t kernel)
    : num_heads_(part.stack.num_heads), kernel_(kernel), gated_(part.glu) {
  const int64_t inner = gated_ ? 2 * d_model : d_model;
  in = register_module("in", nn::Linear(init.child("in"), d_model, inner));
  if (part.predicts_filters) {
    predictor =
        register_module("filters", nn::Linear(init.child("filters"), d_model, num_heads_ * kernel,
                                              nn::LinearOptions{.bias = false}));
  } else {
    // As fairseq draws its [H, 1, K]: of K inputs and H K outputs.
    const auto taps = static_cast<double>(kernel), heads = static_cast<double>(num_heads_);
    const double gain = std::sqrt((taps + heads) / (taps + heads * taps));
    filters =
        register_parameter("filters", init.xavier_uniform("filters", num_heads_, kernel, 1, gain));
  }
  out = register_module("out", nn::Linear(init.child("out"), d_model, d_model));
}

at::Tensor LightConvolutionImpl::forward(const at::Tensor& x, const Pass& pass) const {
  const at::Tensor kept = kernels::dropout(x, pass.input);
  at::Tensor rows;
  if (gated_) {
    // The bias of `in` joins the gate in one pass over [N, 2 D].
    const at::Tensor both = nn::watch(*in, in->product(kept));
    rows = kernels::glu(both, in->bias, {});
  } else {
    rows = in->forward(kept);
  }
  const at::Tensor weights = predicts() ? predictor->forward(rows) : filters;
  return out->forward(nn::watch(*this, pass.weigh(rows, weights)));
}

double LightConvolutionImpl::operations() const {
  return 2 * static_cast<double>(out->weight.size(1) * kernel_);
}

LightConvolutionImpl::Pass LightConvolutionImpl::over(const kernels::Offsets& offsets,
                                                      kernels::Border border,
                                                      const LightDropout& dropout) const {
  const kernels::TimeWindow window{.offsets = offsets, .kernel = kernel_, .border = border};
  const kernels::Dropout drop = dropout.filters;
  const auto weigh = [this, window, drop](const at::Tensor& rows, const at::Tensor& weights) {
    return predicts() ? kernels::dynamic_convolution(rows, weights, num_heads_, drop, window)
                      : kernels::light_convolution(rows, weights, drop, window);
  };
  return {.weigh = weigh, .input = dropout.input};
}

}  // namespace stretto::models
