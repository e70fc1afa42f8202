#include "models/synthesis/magnitude_net.h"

#include "models/synthesis/synthesis_part.h"
#include "nn/watch.h"

namespace stretto::models {

MagnitudeNetImpl::MagnitudeNetImpl(const nn::Init& init, const FrameParts& parts,
                                   const nn::BatchNormOptions& norm) {
  ConvolutionStackOptions form;
  form.in = parts.num_mels;
  form.channels = {256, 512};
  form.kernel = 4;
  form.norm = norm;
  form.first_site = kSynthesisMagnitude;
  stack_ = register_module("stack", ConvolutionStack(init.child("stack"), form));
  output_ = register_module("output",
                            nn::Linear(init.child("output"), form.channels.back(), parts.num_bins));
}

at::Tensor MagnitudeNetImpl::forward(const at::Tensor& mels, const kernels::Offsets& offsets,
                                     const nn::DropoutSource& dropout) const {
  return nn::watch(*this, output_->forward(stack_->forward(mels, offsets, dropout)));
}

}  // namespace stretto::models
