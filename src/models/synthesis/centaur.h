#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/synthesis/centaur_options.h"
#include "models/synthesis/convolution_stack.h"
#include "models/synthesis/decoder_steps.h"
#include "models/synthesis/magnitude_net.h"
#include "models/synthesis/prenet.h"
#include "models/synthesis/synthesis_model.h"
#include "models/synthesis/synthesis_part.h"
#include "models/synthesis/voice.h"
#include "nn/batch_norm.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/time_convolution.h"

/// CENTAUR, the convolutional synthesiser of OpenSeq2Seq (encoders/centaur_encoder.py,
/// decoders/centaur_decoder.py): nothing in it waits for the step before, so that all steps of
/// training are computed at once.
///
///     memory = [convolutions(embedding(text)), voice]
///     x      = W prenet(frame before), then causal convolutions with residual connections
///     layer:   x += causal convolution(norm(x))
///              x += attention(norm(x) + sinusoids, memory + sinusoids)
///              x += feed-forward(norm(x))
///     frames = W norm(x) + b,  stop = v norm(x) + c
///
/// Norms of layers are layer norms, those of convolutions batch norms. There is no post-net.
///
/// Shape letters: S symbols, T steps, N frames, D model width, M width of the memory, L lanes.
namespace stretto::models {

/// dropout(relu(norm(convolution(x)))), each row seeing itself and those before it.
class CausalConvolutionImpl : public torch::nn::Module {
 public:
  CausalConvolutionImpl(const nn::Init& init, int64_t d_model, int64_t kernel);

  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets,
                     const kernels::Dropout& dropout) const;
  /// What stands behind the convolution in evaluation.
  at::Tensor behind(const at::Tensor& y) const { return norm->forward(y).relu(); }

  nn::TimeConvolution convolution{nullptr};
  nn::BatchNorm norm{nullptr};

 private:
  int64_t kernel_;
};
TORCH_MODULE(CausalConvolution);

/// One layer of the decoder.
class CentaurLayerImpl : public torch::nn::Module {
 public:
  CentaurLayerImpl(const nn::Init& init, const CentaurOptions& options, int64_t memory_width);

  /// q [T, D] of rows of x, which stand at these sinusoids.
  at::Tensor query_of(const at::Tensor& x, const at::Tensor& places) const;
  at::Tensor fed(const at::Tensor& x, const kernels::Dropout& inner) const;

  nn::LayerNorm convolution_norm{nullptr}, attention_norm{nullptr}, ffn_norm{nullptr};
  CausalConvolution convolution{nullptr};
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
  nn::FeedForward ffn{nullptr};
};
TORCH_MODULE(CentaurLayer);

/// The decoder's parts, which training and free running read alike.
class CentaurDecoderImpl : public torch::nn::Module {
 public:
  CentaurDecoderImpl(const nn::Init& init, const CentaurOptions& options, const FrameParts& parts,
                     int64_t memory_width);

  /// Sinusoids of places int64 [rows], all below `length`.
  at::Tensor sinusoids(const at::Tensor& places, int64_t length, const at::Tensor& like) const {
    return sinusoids_.rows(places, length, like);
  }

  const CentaurOptions options;
  const FrameParts parts;
  PreNet prenet{nullptr};
  nn::Linear input{nullptr}, projection{nullptr}, stop{nullptr};
  std::vector<CausalConvolution> convolutions;
  std::vector<CentaurLayer> layers;
  nn::LayerNorm final_norm{nullptr};

 private:
  mutable nn::Sinusoids sinusoids_;  // a table that grows
};
TORCH_MODULE(CentaurDecoder);

/// What a layer of the decoder attends to.
struct CentaurMemory {
  std::vector<at::Tensor> keys, values;  ///< of each layer, [S, D]
  kernels::Offsets offsets;
};

/// Free running, a lane for each sequence of the memory; see prenet_masks() for the keys.
std::unique_ptr<decoding::FrameModel> make_centaur_steps(CentaurDecoder decoder,
                                                         const CentaurMemory& memory,
                                                         const at::Tensor& sentence_keys,
                                                         uint64_t prenet_seed);

class Centaur : public SynthesisModel {
 public:
  Centaur(const CentaurOptions& options, const SynthesisPart& part);

  SynthesisOutput forward(const SynthesisInput& input, const nn::PackedRows& frames,
                          const ForwardContext& context, WantsAttention wants) override;
  std::unique_ptr<decoding::FrameModel> start(const SynthesisInput& input) override;
  at::Tensor finish(const at::Tensor& frames, const kernels::Offsets& offsets) override;
  double operations(double symbols, double frames) const override;

 private:
  CentaurMemory memory(const SynthesisInput& input, const ForwardContext& context) const;
  /// The last rows [T, D], and in `shares` the attention weights of each layer, a block for each
  /// sentence.
  at::Tensor decoded(const nn::PackedRows& steps, const CentaurMemory& memory,
                     const nn::DropoutSource& masks, const ForwardContext& context,
                     std::vector<std::vector<at::Tensor>>& shares) const;
  at::Tensor layer(size_t number, const at::Tensor& x, const nn::PackedRows& steps,
                   const CentaurMemory& memory, const nn::DropoutSource& dropout,
                   std::vector<at::Tensor>& shares) const;

  CentaurOptions options_;
  nn::Embedding embedding_{nullptr};
  ConvolutionStack encoder_{nullptr};
  Voice voice_{nullptr};
  CentaurDecoder decoder_{nullptr};
  MagnitudeNet magnitude_net_{nullptr};  // null unless both are written
};

}  // namespace stretto::models
