#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/batch.h"
#include "decoding/step_model.h"
#include "decoding/stream_model.h"
#include "models/encoder.h"
#include "nn/packed_rows.h"
#include "optim/group_options.h"
#include "text/special_ids.h"

namespace stretto::models {

struct LossOutput {
  torch::Tensor loss_sum;     ///< scalar with gradient: sum over target tokens, natural log
  torch::Tensor nll_sum;      ///< scalar without gradient
  int64_t target_tokens = 0;  ///< end-of-sentence included
  /// fp64 [target_tokens], natural log; undefined where a gradient is wanted.
  torch::Tensor token_nll = {};
  /// Scalar without gradient: distance of two passes, summed over target tokens; undefined where
  /// there was one.
  torch::Tensor kl_sum = {};
};

/// A micro-batch of pairs as a model reads it.
struct PairTensors {
  nn::PackedRows src;
  nn::PackedRows tgt;  ///< what the decoder reads: the target, shifted right
  at::Tensor targets;  ///< int64 [target_tokens]
};

/// A parameter with one row for each id of a vocabulary: an embedding or an output projection.
struct VocabularyTable {
  std::string parameter;  ///< as Arena names it
  bool of_source = false;
};

/// An encoder-decoder as training and decoding see it. Single-device code: precision,
/// distribution and checkpoints stay outside.
class Seq2SeqModel : public torch::nn::Module {
 public:
  /// Teacher-forced loss of one micro-batch (see losses/cross_entropy.h). In training a model with
  /// a loss of pairs runs the micro-batch twice with other dropout.
  virtual LossOutput loss(const data::Batch& batch, const ForwardContext& context) = 0;
  /// The same with tensors_of() the batch, for context.training and on the device of the model.
  virtual LossOutput loss(const data::Batch& batch, const PairTensors& tensors,
                          const ForwardContext& context) = 0;
  /// Any thread may call it: it reads no weights.
  /// @param training  with keys of dropout masks, and for a loss of pairs every pair twice
  virtual PairTensors tensors_of(const data::Batch& batch, bool training,
                                 c10::Device device) const = 0;

  /// A view of the model for incremental decoding of these sources; weights are shared.
  /// @param src            packed source ids with end-of-sentence
  /// @param lanes_per_src  beam size
  virtual std::unique_ptr<decoding::StepModel> start(const data::PackedTokens& src,
                                                     int64_t lanes_per_src) = 0;

  /// The same for sources that come and go, of which there is none yet; null = it cannot, or not on
  /// its device.
  virtual std::unique_ptr<decoding::StreamModel> start_stream() { return nullptr; }

  /// Names of its decoders, where it has several. Then a batch is of the decoder number
  /// Batch::stream, and there is no decoding but by one of them.
  virtual std::vector<std::string> heads() const { return {}; }
  /// The model with one of several decoders, sharing all weights.
  /// Throws std::out_of_range where there is none of this number.
  virtual std::shared_ptr<Seq2SeqModel> head(size_t number) {
    throw std::out_of_range("head " + std::to_string(number) + " of a model with one decoder");
  }

  /// Every table of this kind; one that both sides share counts as the target's.
  virtual std::vector<VocabularyTable> vocabulary_tables() const { return {}; }

  /// What its tied parameters are beside their names.
  virtual std::vector<optim::TiedName> tied_names() const { return {}; }

  /// Special ids of its outputs, for search: what a decoder begins and ends with.
  virtual text::SpecialIds target_specials() const = 0;

  /// Longest output, in tokens with end-of-sentence, that the model has positions for.
  virtual int64_t max_target_length() const { return std::numeric_limits<int64_t>::max(); }

  /// Multiplications and additions of loss() without its gradient, of one pass over a pair of
  /// sequences of so many tokens; models/operations.h says what counts.
  virtual double operations(double src_length, double tgt_length) const = 0;

  /// Mean over heads of the cross-attention of one decoder layer (-1 = last), teacher-forced:
  /// for each pair a [target length, source length] matrix.
  virtual std::vector<torch::Tensor> alignments(const data::Batch& batch, int64_t layer) = 0;
};

}  // namespace stretto::models
