#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decoding/step_model.h"
#include "models/encoder.h"
#include "models/recurrent_layers.h"
#include "models/speech/attention_decoder_options.h"
#include "models/speech/location_attention.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"

namespace stretto::models {

/// What an attention decoder is built from beside its options.
struct AttentionDecoderPart {
  nn::Init init;             ///< already at the decoder's name, "decoder"
  int64_t memory_width = 0;  ///< M, of the encoder's rows
  int64_t num_labels = 0;    ///< L
};

/// The decoder of Listen, Attend and Spell (Chan et al. 2015, arXiv:1508.01211, section 3.2), which
/// writes the labels of an utterance one by one, with the attention of Chorowski et al. (2015,
/// arXiv:1506.07503; models/speech/location_attention.h):
///
///     h_t       = first layer([embedding(label_t-1), context_t-1])
///     context_t = attention(h_t, memory)
///     further layers read [row of the layer below, context_t]
///     row_t     = tanh(hidden [top_t, context_t])
///     p(label_t) = softmax(output dropout(row_t))
///
/// Classes 0 to L - 1 are the labels, as a tokenizer numbers them. Class L, the boundary, stands in
/// front of the first label and behind the last one, so that a tokenizer needs no such tokens.
///
/// The loss of an utterance does not depend on those beside it, but for the rounding of products.
/// Nothing is padded: a step is made for those utterances that are long enough, longest first.
///
/// Shape letters: B utterances, N steps of all (the labels and an end of each), L labels, H units,
/// M width of the memory.
class AttentionDecoder : public torch::nn::Module {
 public:
  AttentionDecoder(const AttentionDecoderOptions& options, const AttentionDecoderPart& part);

  /// -log p(labels and their end | memory) of each utterance, natural log, smoothed as
  /// `label_smoothing` says: fp32 (or double) [B], differentiable.
  /// @param labels  ids of the same utterances (models/packed.h); neither ends nor keys are needed
  at::Tensor losses(const nn::PackedRows& labels, const Encoded& memory,
                    const ForwardContext& context) const;

  /// A search over labels that begins and ends with boundary(): decoding::search with bos = eos =
  /// boundary(). Weights are shared; nothing has a gradient.
  std::unique_ptr<decoding::StepModel> start(const Encoded& memory, int64_t lanes_per_source);

  /// Where each label, and the end, was read: for each utterance a matrix [labels + 1, rows of its
  /// memory] whose rows add up to 1. No gradient.
  std::vector<at::Tensor> attention(const nn::PackedRows& labels, const Encoded& memory) const;

  int64_t num_labels() const { return num_labels_; }  ///< L
  int64_t boundary() const { return num_labels_; }    ///< the class in front of and behind labels
  /// Multiplications and additions for an utterance of so many labels and rows.
  double operations(double labels, double memory_length) const;

 private:
  friend class AttentionSteps;

  /// What the steps of the first layer give, in the order of the packed rows of their input.
  struct Walked {
    at::Tensor h, context;                         ///< [N, H] and [N, M]
    std::vector<std::vector<at::Tensor>> weights;  ///< of each utterance and step, where wanted
  };
  Walked walk(const nn::PackedRows& input, const Encoded& memory, const RecurrentPass& pass,
              bool wants_weights) const;
  /// One step of the first layer. @param gates    [n, 4 H] of the embeddings
  ///                              @param context  [n, M] of the step before, or undefined: zeroes
  kernels::RecurrentState first_step(const at::Tensor& gates, const kernels::RecurrentState& before,
                                     const at::Tensor& context) const;
  at::Tensor embed(const at::Tensor& ids) const;
  /// -> [N, L + 1]
  at::Tensor logits(const at::Tensor& top, const at::Tensor& context,
                    const kernels::Dropout& dropout) const;

  RecurrentPart part_;
  double label_smoothing_;
  int64_t num_labels_;
  nn::Embedding embedding_{nullptr};
  std::vector<RecurrentLayer> layers_;
  nn::Linear context_{nullptr};  // of the first layer
  LocationAttention attention_{nullptr};
  nn::Linear hidden_{nullptr}, output_{nullptr};
};

}  // namespace stretto::models
