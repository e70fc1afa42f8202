#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>

#include "kernels/recurrent/attentive.h"
#include "models/recurrent_layers.h"
#include "models/synthesis/convolution_stack.h"
#include "models/synthesis/decoder_steps.h"
#include "models/synthesis/magnitude_net.h"
#include "models/synthesis/prenet.h"
#include "models/synthesis/synthesis_model.h"
#include "models/synthesis/synthesis_part.h"
#include "models/synthesis/tacotron2_options.h"
#include "models/synthesis/tacotron2_steps.h"
#include "models/synthesis/voice.h"
#include "nn/embedding.h"
#include "nn/linear.h"

/// Tacotron 2 (Shen et al. 2017, arXiv:1712.05884), in NVIDIA's and torchaudio's order of layers:
///
///     memory = [bi-LSTM(convolutions(embedding(text))), voice]
///     p      = prenet(frame before)                             dropping always
///     h1     = LSTM([p, context before], h1 before)
///     context= location-sensitive attention of h1 to the memory
///     h2     = LSTM([h1, context], h2 before)
///     frames = W [h2, context] + b,  stop = v [h2, context] + c
///     after  = frames + post-net(frames)
///
/// Shape letters: S symbols, T steps of the decoder, N frames, H units, M width of the memory, A of
/// keys, W of a frame, R frames of a step, K taps of a location filter.
namespace stretto::models {

/// From symbols to rows that the decoder attends to.
class Tacotron2EncoderImpl : public torch::nn::Module {
 public:
  Tacotron2EncoderImpl(const nn::Init& init, const Tacotron2Options& options,
                       const SynthesisPart& part);

  /// -> [S, encoder_dim]
  at::Tensor forward(const nn::PackedRows& text, const ForwardContext& context) const;

 private:
  RecurrentPart part_;
  nn::Embedding embedding_{nullptr};
  ConvolutionStack convolutions_{nullptr};
  RecurrentLayer forward_{nullptr}, backward_{nullptr};
};
TORCH_MODULE(Tacotron2Encoder);

/// From steps that have passed the pre-net to frames.
class Tacotron2DecoderImpl : public torch::nn::Module {
 public:
  /// @param memory_width  M
  Tacotron2DecoderImpl(const nn::Init& init, const Tacotron2Options& options,
                       const FrameParts& parts, int64_t memory_width);

  struct Written {
    at::Tensor frames;     ///< [T, R * W]
    at::Tensor stop;       ///< [T, R], logits
    at::Tensor attention;  ///< blocks, if wanted
  };
  /// @param steps   values [T, W]
  /// @param masks   of the pre-net
  Written forward(const nn::PackedRows& steps, const kernels::Memory& memory,
                  const nn::DropoutSource& masks, const ForwardContext& context,
                  WantsAttention wants) const;

  /// Keys of the memory [S, M], projected once for all steps.
  kernels::Memory memory(const at::Tensor& rows, const kernels::Offsets& offsets) const;
  /// All that a step of free running multiplies by.
  Tacotron2StepWeights step_weights() const;
  /// For one symbol that a step attends to.
  double operations_of_attention() const;

 private:
  kernels::AttentiveWeights attentive_weights() const;
  /// Filters and dense layer as one matrix U [A, 2 * K].
  at::Tensor location() const;

  Tacotron2Options options_;
  FrameParts parts_;
  RecurrentPart part_;
  PreNet prenet_{nullptr};
  RecurrentLayer lower_{nullptr}, upper_{nullptr};
  nn::Linear context_{nullptr}, key_{nullptr}, query_{nullptr};
  nn::Linear projection_{nullptr}, stop_{nullptr};
  at::Tensor score_;             // [A]
  at::Tensor location_filters_;  // [F, 2 * K]
  at::Tensor location_dense_;    // [A, F]
};
TORCH_MODULE(Tacotron2Decoder);

class Tacotron2 : public SynthesisModel {
 public:
  Tacotron2(const Tacotron2Options& options, const SynthesisPart& part);

  SynthesisOutput forward(const SynthesisInput& input, const nn::PackedRows& frames,
                          const ForwardContext& context, WantsAttention wants) override;
  std::unique_ptr<decoding::FrameModel> start(const SynthesisInput& input) override;
  at::Tensor finish(const at::Tensor& frames, const kernels::Offsets& offsets) override;
  double operations(double symbols, double frames) const override;

 private:
  kernels::Memory memory(const SynthesisInput& input, const ForwardContext& context) const;
  at::Tensor behind_postnet(const at::Tensor& frames, const nn::PackedRows& rows,
                            const ForwardContext& context) const;

  Tacotron2Encoder encoder_{nullptr};
  Voice voice_{nullptr};
  Tacotron2Decoder decoder_{nullptr};
  ConvolutionStack postnet_{nullptr};    // null without one
  MagnitudeNet magnitude_net_{nullptr};  // null unless both are written
};

}  // namespace stretto::models
