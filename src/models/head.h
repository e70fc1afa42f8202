#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/loss/top_classes.h"

namespace stretto::models {

/// The targets of the rows that a head behind a decoder is given: one for each row. A head whose
/// targets are sequences of their own stands behind an encoder, and takes them as it needs them
/// (CtcHead).
struct HeadTargets {
  at::Tensor labels;  ///< int64 [N], on the device of the rows
  /// Rows are [2N, D]: rows n and N + n are two passes over label n, with other dropout.
  bool of_pairs = false;
};

/// The last part of a model: from the rows of its last layer to the loss that training minimises,
/// and to probabilities. Encoders and decoders end at rows, and know no targets; a task has
/// targets, and knows no projection.
///
/// N rows of a micro-batch, D their width, C classes (the tokens of a vocabulary, labels), L lanes
/// of a search. Single-device code, as all of a model.
///
/// To write one, derive from this class in models/heads/NAME.{h,cpp}; heads/token.h is the example.
/// A head behind an encoder alone need not: heads of labels, spans, hidden tokens and sequences of
/// labels are modules with functions of their own, which a model such as TextModel hands to its
/// family of tasks (heads/label.h, heads/ctc.h).
///
/// - **Prediction without targets.** Whatever a head predicts is a function of rows alone:
///   log_probs() here and of hidden tokens, SpanHead::scores(), LabelHead::logits() with
///   label_predictions(), CtcHead::best_alignments(). So nobody who only predicts has to make a
///   label up.
/// - **One loss.** The loss stands in the head's file, and training, validation and `eval` call the
///   same function of it: loss(), span_losses(), label_losses(), CtcHead::losses().
/// - **Parameters.** A model registers its head under a name such as "output", so that a layer
///   `dense` of the head becomes `output.dense.weight`. Names decide first weights and are in every
///   checkpoint: they never change. First weights come from an nn::Init at the head's own name.
/// - **Shared tables.** A table that another part owns (tied embeddings) is held, and not
///   registered, so that it has one name. On its way into an operator it passes through
///   nn::watch_use(), under a name that does not depend on the tie: then forensics can tell this
///   use's gradient from that of the lookups.
/// - **One operator.** With many classes, projection and loss are one operator on blocks of rows:
///   [N, C] never exists as a whole. Only heads know this. The operator is handed in
///   (nn/output_loss.h), since `models` and `losses` do not know each other. With few classes
///   (labels, the ends of a span) plain logits are small enough.
/// - **Sums.** loss() gives sums over labels, not means: the loop divides them by the labels of the
///   whole update.
/// - **Two passes.** R-Drop belongs to the head: if it learns_from_pairs(), training computes two
///   passes of each row, with other dropout, and hands it both.
/// - **No search.** A head behind a decoder that no search uses still has log_probs(): inference
///   reads its answers there.
///
/// An entry of `[[model.heads]]` is a decoder with such a head behind it.
class Head : public torch::nn::Module {
 public:
  /// rows [N, D], or [2N, D] of pairs -> sums over the N labels. `token_nll` is defined where no
  /// gradient is wanted, `kl_sum` of pairs alone. Throws c10::Error for a head without such a loss.
  virtual kernels::CrossEntropy loss(const at::Tensor& rows, const HeadTargets& targets) = 0;

  /// Whether training wants two passes of each micro-batch. Outside training there is one.
  virtual bool learns_from_pairs() const { return false; }

  /// A step of search: rows [L, D] -> fp32 [L, C], natural log. Here the result is whole: a search
  /// has few lanes, and needs all classes.
  virtual at::Tensor log_probs(const at::Tensor& rows) = 0;

  /// The same with what makes logits of them: log_probs + normalisers. By itself a head has none.
  struct Scores {
    at::Tensor log_probs;         ///< fp32 [L, C]
    at::Tensor normalisers = {};  ///< fp32 [L]; undefined: the logits are not known
  };
  virtual Scores scores(const at::Tensor& rows) { return {.log_probs = log_probs(rows)}; }

  /// The likeliest classes of each row, for a search that needs no others. By itself a head makes
  /// all log-probabilities first.
  virtual kernels::TopClasses top(const at::Tensor& rows, const kernels::TopQuery& query);
  /// Some classes, ascending, laid out for top() among them alone. Throws c10::Error for a head
  /// that cannot.
  virtual std::shared_ptr<const kernels::ClassRows> classes(const std::vector<int64_t>& ids);
  virtual kernels::TopClasses top(const at::Tensor& rows, const kernels::ClassRows& classes,
                                  const kernels::TopQuery& query);

  virtual int64_t num_classes() const = 0;  ///< C
  /// Multiplications and additions of loss() for one row; models/operations.h says what counts.
  virtual double operations() const = 0;
  /// Where its parameters lie, shared ones too.
  virtual c10::Device device() const = 0;
};

}  // namespace stretto::models
