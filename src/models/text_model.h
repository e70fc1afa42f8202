#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "losses/teacher.h"
#include "models/bert_options.h"
#include "models/causal_options.h"
#include "models/heads/label.h"
#include "models/heads/masked_token.h"
#include "models/heads/span.h"
#include "models/label_model_options.h"
#include "models/model_cost.h"
#include "models/seq2seq_model.h"
#include "models/text_stack.h"
#include "optim/group_options.h"

/// Shape letters: N rows of all sequences, B sequences, D model width, V tokens.
namespace stretto::models {

/// What is read from the rows of a text.
enum class TextHeadKind : uint8_t {
  kNone,          ///< nothing: an encoder, with the pooler that model.pooling asks for
  kMaskedTokens,  ///< MaskedTokenHead
  kSpans,         ///< SpanHead
  kLabels,        ///< LabelHead
};

/// A stack of a language model, and how labels are read from its rows.
struct CausalTextOptions {
  CausalModelOptions stack;
  CausalPool pool = {};
};

/// What a TextModel is built from.
struct TextModelSetup {
  BertOptions model;
  std::optional<CausalTextOptions> causal = {};  ///< in the place of `model`; of kLabels and kNone
  int64_t rows = 0;                              ///< V of the table of tokens; may be rounded up
  int64_t num_ids = 0;                           ///< the real vocabulary; 0 = rows
  int64_t pad = -1;                              ///< row that starts at zero; -1 = none
  TextHeadKind head = TextHeadKind::kNone;       ///< kNone counts with model.head = "none" too
  int64_t num_labels = 0;                        ///< of kLabels; 1 for a value
  double label_smoothing = 0;                    ///< of kMaskedTokens
  std::optional<losses::TeacherWeights> teacher = {};  ///< of kMaskedTokens: MaskedTokenHeadSetup
  uint64_t seed = 1;                                   ///< of the first weights
  bool draws_weights = true;     ///< false: matrices are unset, since weights are loaded at once
  at::Device device = at::kCPU;  ///< at::kMeta counts parameters without memory
};

/// A stack over the tokens of a text and what is read from its rows; parameters are named like
/// `encoder.layers.0.self_attention.qkv.weight` and `head.output.weight`. A causal stack is
/// `decoder`, with the names of a CausalModel. Single-device code.
class TextModel : public torch::nn::Module {
 public:
  /// Throws Error(kUsage) for options that contradict each other (models/option_conflicts.h).
  explicit TextModel(const TextModelSetup& setup);

  /// Rows of the last layer, [N, D].
  at::Tensor encode(const nn::PackedRows& input, const ForwardContext& context);
  /// Rows `wanted` of these alone, int64 [R] -> [R, D], for less: see TextStack::forward_of.
  at::Tensor encode_of(const at::Tensor& wanted, const nn::PackedRows& input,
                       const ForwardContext& context);

  /// One row for each sequence as model.pooling says, with head_dropout in training: [B, D], or
  /// what LabelHead makes of it. Of heads of labels and none.
  at::Tensor pooled(const nn::PackedRows& input, const ForwardContext& context);
  /// From rows of encode(), without a layer and without dropout. @param pooling  "mean" or "cls",
  /// which is the first row: that of a causal stack has seen no text
  at::Tensor sentence_vectors(const at::Tensor& rows, const kernels::Offsets& offsets,
                              const std::string& pooling) const;

  /// The head. Throws c10::Error for a model with another one.
  const MaskedTokenHead& masked_tokens() const;
  const SpanHead& spans() const;
  const LabelHead& labels() const;

  TextHeadKind head_kind() const { return kind_; }
  const BertOptions& options() const { return options_; }  ///< defaults of a causal model
  bool is_causal() const { return is_causal_; }
  /// Whether tokens have a vector for the text of a pair that they belong to.
  bool has_segments() const { return !is_causal_ && options_.num_segments > 0; }
  int64_t width() const { return stack_->width(); }  ///< D
  c10::Device device() const { return stack_->embedding()->weight.device(); }
  /// Longest sequence, in tokens with special ones, that the model has positions for.
  int64_t max_length() const { return stack_->max_length(); }

  /// Every table with a row for each token.
  std::vector<VocabularyTable> vocabulary_tables() const;
  /// What its tied parameters are beside their names.
  std::vector<optim::TiedName> tied_names() const;

  /// Multiplications and additions of forward over one sequence of `length` tokens, of which the
  /// head reads `head_rows`: masked tokens, those an answer may begin or end at, or 1 (labels). Of
  /// the last layer, those rows are computed that are read.
  double operations(double length, double head_rows) const;

 private:
  void add_head(const TextModelSetup& setup, const nn::Init& init);

  BertOptions options_;
  bool is_causal_;
  TextHeadKind kind_;
  std::unique_ptr<TextStack> stack_;
  std::shared_ptr<MaskedTokenHead> masked_tokens_;  // one of the three, or none
  std::shared_ptr<SpanHead> spans_;
  std::shared_ptr<LabelHead> labels_;
};

/// TextModel of the setup, with first weights that depend on seed and parameter name.
std::shared_ptr<TextModel> make_text_model(const TextModelSetup& setup);

/// Mean lengths of what a TextModel trains on.
struct TextLengths {
  double tokens = 128;   ///< of a sequence
  double head_rows = 1;  ///< of a sequence: see TextModel::operations
};

/// What the model weighs, and what training it costs for one token of its input.
ModelCost cost_of(const TextModel& model, const TextLengths& lengths);

}  // namespace stretto::models
