#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "decoding/step_model.h"
#include "models/causal_options.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "models/head.h"
#include "models/model_cost.h"
#include "models/seq2seq_model.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/output_loss.h"
#include "nn/packed_rows.h"
#include "optim/group_options.h"
#include "text/special_ids.h"

/// Language models: what comes behind each token of a text, from the tokens before it alone.
///
/// Shape letters: N rows of all sequences, B sequences, D width of the rows, V tokens.
namespace stretto::models {

/// What a model takes over from one stretch of a text to the next, of one kind: a row for each
/// lane.
struct CarryShape {
  std::string name;   ///< "h.0", "c.0", "h.1", …: the name of a tensor in a checkpoint
  int64_t width = 0;  ///< the state is [lanes, width]
};

/// What a model makes of a micro-batch.
struct CausalPass {
  at::Tensor rows;  ///< [N, D]: behind each token, what predicts the next one
  std::vector<at::Tensor>
      carry;  ///< [B, width] each, behind the last tokens; empty without a state
  /// What the rows add to the loss of training: a scalar with gradient, the sum over N; undefined =
  /// nothing. Outside training there is none.
  at::Tensor regulariser = {};
};

/// What stands between tokens and rows: one kind of stack. CausalModel owns its module, and names
/// it `decoder`.
class CausalBody {
 public:
  virtual ~CausalBody() = default;
  virtual std::shared_ptr<torch::nn::Module> module() const = 0;
  /// As CausalModel::forward.
  virtual CausalPass forward(const nn::PackedRows& input, const std::vector<at::Tensor>& carry,
                             const ForwardContext& context) = 0;
  virtual std::unique_ptr<StepDecoder> start(int64_t sources, int64_t lanes_per_source) = 0;
  virtual std::vector<CarryShape> carry_shapes() const { return {}; }
  virtual nn::Embedding embedding() const = 0;
  virtual int64_t width() const = 0;       ///< D
  virtual int64_t max_length() const = 0;  ///< as CausalModel::max_length
  virtual double operations(double length) const = 0;
};

/// What a CausalModel is built from.
struct CausalModelSetup {
  CausalModelOptions model;
  int64_t rows = 0;                ///< V of the table of tokens; may be rounded up
  int64_t num_ids = 0;             ///< the real vocabulary, at most rows; 0 = rows
  text::SpecialIds specials = {};  ///< of the tokenizer; the row of `pad` starts at zero
  uint64_t seed = 1;               ///< of the first weights
  bool draws_weights = true;       ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;    ///< at::kMeta counts parameters without memory
};

/// A stack of layers over the tokens of a text, and the head that predicts the next token.
/// Parameters are named as those of the decoder of an EncoderDecoder, which may start from them:
/// `decoder.embedding.weight`, `decoder.layers.0.self_attention.qkv.weight`, `output.weight` unless
/// it is tied, `output.bias` where it has one. An adaptive softmax has `output.clusters` or, where
/// it is not tied, `output.weight` and `output.tails.0.…` (models/heads/adaptive.h). Single-device
/// code.
///
/// A Transformer begins each sequence of a micro-batch at position 0, and no sequence attends to
/// another: documents of any lengths are packed as sequences of their own. It has no state.
///
/// A recurrent model goes on from the state of each lane: a micro-batch has a sequence for each
/// lane, its next stretch of text, and `carry` a row for each sequence.
///
///     const CausalPass pass = model.forward(rows, carry, context);      // carry = {}: texts begin
///     const kernels::CrossEntropy sums = model.head().loss(pass.rows, {.labels = next_tokens});
class CausalModel : public torch::nn::Module {
 public:
  /// Throws Error(kUsage) for options that contradict each other, or the vocabulary
  /// (models/option_conflicts.h).
  CausalModel(const CausalModelSetup& setup, nn::OutputLosses losses);

  /// @param input  what the model reads; row n predicts the token behind it
  /// @param carry  as carry_shapes() says, a row for each sequence of `input`; empty: every
  ///               sequence is the beginning of a text. No gradient goes into it
  /// Throws c10::Error for a state of other shapes, or of a model without one.
  CausalPass forward(const nn::PackedRows& input, const std::vector<at::Tensor>& carry,
                     const ForwardContext& context);

  /// The loss behind rows of forward(), and probabilities of the next token.
  Head& head() { return *head_; }
  const Head& head() const { return *head_; }

  /// A view of the model for generation, without gradients; weights are shared. Each source is a
  /// text from its beginning, of which lanes_per_source continuations grow side by side.
  std::unique_ptr<decoding::StepModel> start(int64_t sources, int64_t lanes_per_source);

  /// What goes on from one micro-batch to the next, bottom layer first; empty = nothing.
  std::vector<CarryShape> carry_shapes() const { return body_->carry_shapes(); }
  /// The state in front of the first token of a text: zeros on the model's device, fp32.
  std::vector<at::Tensor> first_carry(int64_t lanes) const;

  /// Longest sequence, in tokens that it reads, that the model has positions for.
  int64_t max_length() const { return body_->max_length(); }
  int64_t width() const { return body_->width(); }  ///< D
  c10::Device device() const { return head_->device(); }
  const CausalModelOptions& options() const { return options_; }

  /// Every table with a row for each token.
  std::vector<VocabularyTable> vocabulary_tables() const;
  /// What its tied parameters are beside their names.
  std::vector<optim::TiedName> tied_names() const;

  /// Multiplications and additions of forward and of the loss without gradients, for one token of
  /// sequences of `length`; models/operations.h says what counts.
  double operations(double length) const;

 private:
  CausalModelOptions options_;
  std::unique_ptr<CausalBody> body_;
  std::shared_ptr<Head> head_;
};

/// CausalModel of the setup, with first weights that depend on seed and parameter name.
///
/// @param loss  what `losses::make_loss` gave; may be empty for a model that only generates
/// @param pair_loss  what `losses::make_pair_loss` gave: where it is not empty, training runs each
///                   micro-batch twice (models/packed.h: pack_twice) and minimises it
std::shared_ptr<CausalModel> make_causal_model(const CausalModelSetup& setup, nn::OutputLoss loss,
                                               nn::OutputLoss pair_loss = {});

/// What the model weighs, and what training it costs for one token of its input.
/// @param length  mean length of the sequences that it trains on, in tokens
ModelCost cost_of(const CausalModel& model, double length);

}  // namespace stretto::models
