#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/bert_options.h"
#include "models/encoder.h"
#include "models/label_model_options.h"
#include "nn/batch_norm.h"
#include "nn/init.h"
#include "nn/linear.h"

/// Shape letters: N rows of all sequences, B sequences, D width of rows, L labels, P width of what
/// is pooled: 3 D of "concat", 2 D of "state", else D.
namespace stretto::models {

/// What is read from a text: how the head's logits [B, L] are meant, and its labels are given.
enum class LabelTarget : uint8_t {
  kOne,      ///< one of L labels: softmax; labels int64 [B]
  kSeveral,  ///< any of L labels: logistic function; labels [B, L], 0 or 1
  kValue,    ///< a value, L = 1; values [B]
};

struct LabelHeadSetup {
  nn::Init init;           ///< already at the head's own name: "head"
  int64_t num_labels = 0;  ///< L; 1 for a value; 0 = rows are pooled, and nothing is read from them
  uint64_t first_site = 0;  ///< of dropout
};

/// One row for each sequence, and labels or a value read from it:
///
///     pooled = dropout(norm(pooling(rows)))               as model.pooling says, by head_dropout
///     pooled = dropout(hidden_norm(relu(hidden pooled)))  of causal stacks, with head_units
///     logits = output pooled                              [B, L]
///
/// `pooler` is a layer of the poolings cls_tanh and cls_relu alone, tanh or relu behind it. The
/// norms are batch norms of causal stacks with head_norm alone, as PoolingLinearClassifier of
/// fastai: over the B sequences of a micro-batch. A micro-batch of one sequence is normalised by
/// the running statistics.
class LabelHead : public torch::nn::Module {
 public:
  LabelHead(const BertOptions& options, const LabelHeadSetup& setup);
  /// Behind a causal stack. A head without labels has no hidden layer. @param width  D
  LabelHead(const CausalPool& pool, int64_t width, const LabelHeadSetup& setup);

  /// Whether the head reads what a recurrent stack ends in (TextStack::last_states), and no row.
  bool reads_states() const { return pooling_ == "state"; }
  /// Whether the head reads one row of each sequence, and no other one.
  bool reads_one_row() const;
  /// Which one, int64 [B]: the first, or the last.
  at::Tensor places_of_rows(const kernels::Offsets& offsets) const;
  /// rows [N, D] of `input` -> [B, P], or [B, head_units], with dropouts in training.
  at::Tensor pooled(const at::Tensor& rows, const nn::PackedRows& input,
                    const ForwardContext& context) const;
  /// The same of the one row of each sequence that pooling leaves, or of states, [B, P].
  at::Tensor behind_pooling(const at::Tensor& row_of_each, const nn::PackedRows& input,
                            const ForwardContext& context) const;
  /// pooled -> fp32 (or double) [B, L]. Throws c10::Error where there are no labels.
  at::Tensor logits(const at::Tensor& pooled) const;

  int64_t num_labels() const { return num_labels_; }
  double operations() const;  ///< multiplications and additions for one sequence

 private:
  at::Tensor pool(const at::Tensor& rows, const kernels::Offsets& offsets) const;

  std::string pooling_;
  double dropout_;
  double hidden_dropout_ = 0;
  uint64_t first_site_;
  int64_t num_labels_;
  nn::Linear pooler_{nullptr}, hidden_{nullptr}, output_{nullptr};
  nn::BatchNorm norm_{nullptr}, hidden_norm_{nullptr};
};

/// What logits predict: probabilities [B, L], or values [B, 1]. No label is needed.
at::Tensor label_predictions(LabelTarget target, const at::Tensor& logits);

/// The logits that predict the mean of what several models predict, fp64 [B, L]; those of one model
/// as they are.
at::Tensor mean_label_logits(LabelTarget target, const std::vector<at::Tensor>& logits);

/// How many samples have exactly their labels predicted; 0 for values. A scalar of the logits'
/// type.
at::Tensor num_labels_right(LabelTarget target, const at::Tensor& logits, const at::Tensor& labels);

/// Whether the label is one of the k most probable ones: bool [B]. Of labels that are alike the
/// first comes first, as in num_labels_right(), which k = 1 agrees with. A sample with NaN among
/// its logits has no most probable label.
/// @param labels  int64 [B], of kOne
at::Tensor is_in_top(const at::Tensor& logits, const at::Tensor& labels, int64_t k);

/// Losses of B samples.
struct LabelLosses {
  at::Tensor each;    ///< [B], differentiable: add them up for the loss of a micro-batch
  at::Tensor weight;  ///< [B], no gradient: what each sample counts in the divisor
};

/// What the losses of labels are given beside logits and labels; values read nothing of it.
struct LabelWeights {
  at::Tensor of_classes = {};  ///< fp32 [L]: what a sample of each label counts; undefined = 1
  double smoothing = 0;        ///< of kOne, as kernels::linear_cross_entropy has it
};

/// The loss of a target: the one place that training, validation and `eval` have it from. It is one
/// of the three functions below.
LabelLosses label_losses(LabelTarget target, const at::Tensor& logits, const at::Tensor& labels,
                         const LabelWeights& weights = {});

/// One of L labels: w[label] times the (smoothed) cross entropy, natural log. The divisor is the
/// sum of w[label], so that weights change shares and not the size of the loss. labels int64 [B].
LabelLosses label_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                const LabelWeights& weights = {});

/// Any of L labels: the mean over labels of the binary cross entropy of a logistic function.
/// @param labels   [B, L], 0 or 1
/// @param weights  [L]: what each label's part is multiplied by; undefined = 1
LabelLosses binary_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                 const at::Tensor& weights = {});

/// A value: (logits - value)^2. logits [B, 1], values [B].
LabelLosses squared_error(const at::Tensor& logits, const at::Tensor& values);

}  // namespace stretto::models
