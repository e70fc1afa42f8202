#include "models/synthesis/convolution_stack.h"

#include <ATen/ATen.h>

#include <string>

#include "kernels/convolution/convolution.h"
#include "nn/watch.h"

namespace stretto::models {

ConvolutionStackImpl::ConvolutionStackImpl(const nn::Init& init,
                                           const ConvolutionStackOptions& options)
    : options_(options) {
  nn::BatchNormOptions norm = options.norm;
  norm.single_by_running = true;  // a text of one symbol is a text
  int64_t in = options.in;
  for (size_t i = 0; i < options.channels.size(); ++i) {
    const int64_t out = options.channels[i];
    const std::string number = std::to_string(i);
    const nn::TimeConvolutionOptions form{
        .kernel = options.kernel, .gain = options.tanh ? 1.0 : 2.0, .weight_norm = false};
    convolutions_.push_back(
        register_module("convolution" + number,
                        nn::TimeConvolution(init.child("convolution" + number), in, out, form)));
    norms_.push_back(
        register_module("norm" + number, nn::BatchNorm(init.child("norm" + number), out, norm)));
    in = out;
  }
}

at::Tensor ConvolutionStackImpl::activated(const at::Tensor& x, size_t layer) const {
  if (options_.linear_end && layer + 1 == convolutions_.size()) return x;
  return options_.tanh ? x.tanh() : x.relu();
}

at::Tensor ConvolutionStackImpl::forward(const at::Tensor& x, const kernels::Offsets& offsets,
                                         const nn::DropoutSource& dropout) const {
  at::Tensor rows = x;
  for (size_t i = 0; i < convolutions_.size(); ++i) {
    const nn::TimeConvolutionWeights weights = convolutions_[i]->effective();
    rows = nn::watch(*convolutions_[i],
                     kernels::time_convolution(rows, weights.weight, weights.bias,
                                               {.offsets = offsets, .kernel = options_.kernel}));
    rows = activated(norms_[i]->forward(rows), i);
    rows = kernels::dropout(rows, dropout.at(options_.dropout, options_.first_site + i));
  }
  return nn::watch(*this, rows);
}

}  // namespace stretto::models
