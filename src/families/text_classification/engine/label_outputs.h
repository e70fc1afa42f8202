#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/labelled/labelled_set.h"
#include "distributed/process_group.h"
#include "experiment/experiment.h"
#include "families/text_classification/text_classification_options.h"
#include "models/heads/label.h"
#include "models/text_model.h"
#include "train/task.h"

/// Shape letters: B samples of a batch, N samples of a set, L labels; of a value L = 1.
namespace stretto::tasks {

/// What is read from a text.
enum class LabelTarget : uint8_t { kOne, kSeveral, kValue };

/// Logits as what they stand for, and their loss: one of L labels (softmax, cross entropy), any of
/// L labels (logistic function, binary cross entropy), a value (squared error).
class LabelOutputs {
 public:
  /// @param labels   null for a value
  /// @param weights  of classes [L]; empty = 1 each
  LabelOutputs(const experiment::TextClassificationOptions& options, const data::Labels* labels,
               std::vector<double> weights);

  LabelTarget target() const { return target_; }
  int64_t num_outputs() const { return num_outputs_; }

  /// logits [B, L] of a batch with data::kLabelColumn.
  models::LabelLosses losses(const at::Tensor& logits, const data::Batch& batch) const;
  /// The divisor that losses() gives, from the data alone.
  double weight(const data::Batch& batch) const;
  /// Samples of the batch whose labels are all predicted, and no others; none for values. A scalar.
  at::Tensor num_right(const at::Tensor& logits, const data::Batch& batch) const;

  /// Probabilities [B, L], or values [B, 1].
  at::Tensor probabilities(const at::Tensor& logits) const;
  /// The logits of the mean probability of several models, or of their mean value.
  at::Tensor mean_logits(const std::vector<at::Tensor>& logits) const;

 private:
  at::Tensor labels_of(const data::Batch& batch, at::Device device) const;
  at::Tensor indicators_of(const data::Batch& batch, at::Device device) const;
  at::Tensor values_of(const data::Batch& batch, at::Device device) const;

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
struct LabelPredictions {
  std::vector<double> outputs;  ///< probabilities or values [N * L]
  std::vector<double> losses;   ///< [N]: each as part of the mean
  /// [N]: whether a model gave values that are infinite or NaN, which may look like probabilities.
  std::vector<uint8_t> overflowed = {};
  double loss = 0;  ///< what training minimises, without dropout
  int64_t num_outputs = 1;

  /// The outputs of sample `i`.
  std::span<const double> of(int64_t i) const {
    const auto width = static_cast<size_t>(num_outputs);
    return {outputs.data() + static_cast<size_t>(i) * width, width};
  }
};

struct PredictOptions {
  int64_t max_tokens = 0, max_samples = 0;  ///< of a batch; 0 tokens = as fits the device
  /// Batches are shared out; every process gets the whole result, which does not depend on their
  /// number.
  distributed::ProcessGroup group = {};
};

/// What models predict of a batch.
struct BatchPredictions {
  at::Tensor mean_logits;    ///< [B, L]: the logits of the models together
  at::Tensor probabilities;  ///< [B, L], or values [B, 1]
  at::Tensor overflowed;     ///< fp64 [B]: 1 where some logit of some model is infinite or NaN
};
/// @param models  one, or several whose probabilities are averaged
BatchPredictions predict_batch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                               const LabelOutputs& outputs, const data::Batch& batch);

/// @param models  one, or several whose probabilities are averaged
LabelPredictions predict_labels(const std::vector<std::shared_ptr<models::TextModel>>& models,
                                const LabelOutputs& outputs, const data::LabelledSet& set,
                                const PredictOptions& options);

/// Logits of a batch, [B, L], as `context` says.
at::Tensor label_logits(models::TextModel& model, const data::Batch& batch,
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
                                       const data::LabelledSet& set);

}  // namespace stretto::tasks
