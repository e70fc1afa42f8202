#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "models/synthesis/convolution_stack.h"
#include "models/synthesis/synthesis_options.h"
#include "nn/linear.h"

namespace stretto::models {

/// From mel bands to bins of the magnitude, OpenSeq2Seq's form (`decoder_params["spectrogram_mode"]
/// = "both"`): convolutions of 256 and 512 channels with 4 taps, and a linear map. It writes what
/// the data has, the logarithm too. N frames; [N, mels] -> [N, bins].
class MagnitudeNetImpl : public torch::nn::Module {
 public:
  MagnitudeNetImpl(const nn::Init& init, const FrameParts& parts, const nn::BatchNormOptions& norm);

  at::Tensor forward(const at::Tensor& mels, const kernels::Offsets& offsets,
                     const nn::DropoutSource& dropout) const;

 private:
  ConvolutionStack stack_{nullptr};
  nn::Linear output_{nullptr};
};
TORCH_MODULE(MagnitudeNet);

}  // namespace stretto::models
