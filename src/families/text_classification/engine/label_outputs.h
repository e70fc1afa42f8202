#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/labelled/labelled_samples.h"
#include "data/length_batches.h"
#include "distributed/process_group.h"
#include "experiment/experiment.h"
#include "families/text_classification/text_classification_options.h"
#include "models/heads/label.h"
#include "models/text_model.h"
#include "train/evaluation.h"
#include "train/task.h"

/// Shape letters: B samples of a batch, N samples of a set, L labels; of a value L = 1.
namespace stretto::tasks {

using models::LabelTarget;

/// The name under which a run keeps the names of its labels.
inline constexpr const char* kLabelsAsset = "labels.json";

/// What a run's options make of the functions of models/heads/label.h: which target its data have,
/// with the weights of classes and the smoothing of its loss.
class LabelOutputs {
 public:
  /// @param labels   null for a value
  /// @param weights  of classes [L]; empty = 1 each
  LabelOutputs(const experiment::TextClassificationOptions& options, const data::Labels* labels,
               std::vector<double> weights);

  LabelTarget target() const { return target_; }
  int64_t num_outputs() const { return num_outputs_; }

  /// The labels of a batch, data::kLabelColumn, as losses() reads them, on the CPU: ids [B];
  /// fp32 [B, L] of 0 and 1 for several; values fp32 [B].
  at::Tensor targets_of(const train::Prepared& batch) const;
  /// @param logits  [B, L], of the device of `targets`
  models::LabelLosses losses(const at::Tensor& logits, const at::Tensor& targets) const;
  /// The divisor that losses() gives, from the data alone.
  double weight(const data::Batch& batch) const;
  /// Samples of the batch whose labels are all predicted, and no others; none for values. A scalar.
  at::Tensor num_right(const at::Tensor& logits, const at::Tensor& targets) const;

  /// Probabilities [B, L], or values [B, 1].
  at::Tensor probabilities(const at::Tensor& logits) const;
  /// The logits of the mean probability of several models, or of their mean value.
  at::Tensor mean_logits(const std::vector<at::Tensor>& logits) const;

 private:
  LabelTarget target_;
  int64_t num_outputs_;
  double smoothing_;
  std::vector<double> weights_;
};

/// Weights of classes as loss.class_weights says: empty = 1 each. Throws Error(kUsage) for a list
/// of another length than there are labels.
/// @param train  what "balanced" counts
std::vector<double> class_weights(const experiment::TextClassificationOptions& options,
                                  const data::Labels* labels, const data::Batch& train);

/// What models predict of a set.
class LabelPredictions {
 public:
  /// @param table  a row for each sample: its outputs [L], its loss, what it counts in the divisor,
  ///               1 where it overflowed
  LabelPredictions(train::ScoreTable table, int64_t num_outputs)
      : table_(std::move(table)), num_outputs_(num_outputs) {}

  int64_t num_outputs() const { return num_outputs_; }
  /// The probabilities of sample `i`, or its value.
  std::span<const double> of(int64_t i) const {
    return table_.row(i).first(static_cast<size_t>(num_outputs_));
  }
  /// Its part of the sum of losses.
  double loss_of(int64_t i) const { return behind_outputs(i, 0); }
  /// Whether a model gave values that are infinite or NaN, which may look like probabilities.
  bool overflowed(int64_t i) const { return behind_outputs(i, 2) != 0; }
  /// What training minimises, without dropout.
  double loss() const;

 private:
  double behind_outputs(int64_t i, int64_t column) const {
    return table_.row(i)[static_cast<size_t>(num_outputs_ + column)];
  }

  train::ScoreTable table_;
  int64_t num_outputs_;
};

/// Samples in batches for evaluation, sorted and cut once.
struct LabelBatches {
  std::unique_ptr<data::BatchSource> batches;
  int64_t num_samples = 0;
};
LabelBatches label_batches(std::shared_ptr<const data::LengthSamples> samples,
                           const experiment::TextEvalOptions& eval, at::Device device);

/// A batch with its texts as rows(0) and its labels as tensor(0).
train::Prepared prepare_labelled(data::Batch batch, const models::TextModel& model,
                                 const LabelOutputs& outputs);

/// What models predict of a batch.
struct BatchPredictions {
  at::Tensor mean_logits;    ///< [B, L]: the logits of the models together
  at::Tensor probabilities;  ///< [B, L], or values [B, 1]
  at::Tensor overflowed;     ///< fp64 [B]: 1 where some logit of some model is infinite or NaN
};
/// @param models  one, or several whose probabilities are averaged
/// @param texts   as prepare_texts() makes it
BatchPredictions predict_batch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                               const LabelOutputs& outputs, const train::Prepared& texts);

/// The same of a set, whose batches are shared out among processes (train/evaluation.h).
/// Collective.
LabelPredictions predict_labels(const std::vector<std::shared_ptr<models::TextModel>>& models,
                                const LabelOutputs& outputs, const LabelBatches& set,
                                train::EvaluationSetup setup);

/// Logits of a batch, [B, L], as `context` says.
at::Tensor label_logits(models::TextModel& model, const train::Prepared& texts,
                        const models::ForwardContext& context);

/// The numbers of the labels that probabilities mean: the most probable one, or those of at least
/// 0.5.
std::vector<int64_t> chosen_labels(LabelTarget target, std::span<const double> probabilities);

/// Scores of a set: accuracy, f1 and so on, as
/// families/text_classification/text_classification_rules.cpp names them. `f1` is that of label 1
/// where there are two, else macro_f1; of several labels a text it is micro-averaged, and accuracy
/// counts texts whose labels are all right.
std::vector<train::Score> label_scores(const LabelOutputs& outputs,
                                       const LabelPredictions& predictions,
                                       const data::LabelledSamples& set);

}  // namespace stretto::tasks
