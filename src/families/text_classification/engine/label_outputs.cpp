#include "families/text_classification/engine/label_outputs.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/length_batches.h"
#include "data/samples_in_memory.h"
#include "distributed/numbers.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/text_task.h"
#include "families/text_classification/text_classification_options.h"
#include "metrics/label_counts.h"
#include "metrics/value_pairs.h"
#include "tasks/parallel_jobs.h"

namespace stretto::tasks {
namespace {

using data::kLabelColumn;

constexpr double kChosen = 0.5;  // the probability from which one of several labels is predicted

LabelTarget target_of(const data::LabelledOptions& data) {
  if (data.is_regression()) return LabelTarget::kValue;
  return data.has_several_labels() ? LabelTarget::kSeveral : LabelTarget::kOne;
}

double or_zero(double score) {
  return std::isfinite(score) ? score : 0;
}

std::vector<train::Score> value_scores(const LabelPredictions& predictions,
                                       const data::LabelledSet& set) {
  metrics::ValuePairs pairs(set.size());
  const auto& values = set.samples.column<float>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    pairs.add(i, values.sequence(i).front(), predictions.of(i).front());
  }
  return {{.name = "pearson", .value = or_zero(pairs.pearson()), .higher_is_better = true},
          {.name = "spearman", .value = or_zero(pairs.spearman()), .higher_is_better = true},
          {.name = "mse", .value = pairs.mean_squared_error()}};
}

std::vector<train::Score> one_label_scores(const LabelPredictions& predictions,
                                           const data::LabelledSet& set) {
  metrics::LabelCounts counts(predictions.num_outputs);
  const auto& labels = set.samples.column<int64_t>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    counts.add(labels.sequence(i).front(),
               chosen_labels(LabelTarget::kOne, predictions.of(i)).front());
  }
  const double macro = counts.macro_f1();
  return {{.name = "accuracy", .value = counts.accuracy(), .higher_is_better = true},
          {.name = "f1",
           .value = predictions.num_outputs == 2 ? counts.f1(1) : macro,
           .higher_is_better = true},
          {.name = "macro_f1", .value = macro, .higher_is_better = true},
          {.name = "matthews", .value = counts.matthews(), .higher_is_better = true}};
}

std::vector<train::Score> several_label_scores(const LabelPredictions& predictions,
                                               const data::LabelledSet& set) {
  metrics::MultiLabelCounts counts(predictions.num_outputs);
  const auto& labels = set.samples.column<int64_t>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    counts.add(labels.sequence(i), chosen_labels(LabelTarget::kSeveral, predictions.of(i)));
  }
  return {{.name = "accuracy", .value = counts.exact_match(), .higher_is_better = true},
          {.name = "f1", .value = counts.micro_f1(), .higher_is_better = true},
          {.name = "macro_f1", .value = counts.macro_f1(), .higher_is_better = true}};
}

/// Behind the outputs of a sample in a set's table: its loss, its divisor, whether it overflowed.
constexpr int64_t kColumnsBehind = 3;

/// Of each sample whether some logit is infinite or NaN: fp64 [B] of 0 and 1.
at::Tensor overflowed_rows(const std::vector<at::Tensor>& logits) {
  at::Tensor finite = logits.front().isfinite().all(1);
  for (size_t i = 1; i < logits.size(); ++i) finite &= logits[i].isfinite().all(1);
  return finite.logical_not().to(at::kDouble);
}

/// What a batch has of a set's table.
void fill_rows(const BatchPredictions& predicted, const models::LabelLosses& losses,
               const data::Batch& batch, std::vector<double>& table) {
  const auto values = predicted.probabilities.to(at::kCPU, at::kDouble).contiguous();
  const auto each = losses.each.to(at::kCPU, at::kDouble).contiguous();
  const auto weight = losses.weight.to(at::kCPU, at::kDouble).contiguous();
  const auto bad = predicted.overflowed.to(at::kCPU).contiguous();
  const int64_t width = values.size(1), row_width = width + kColumnsBehind;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    double* row = table.data() + batch.sample_ids[static_cast<size_t>(i)] * row_width;
    std::copy_n(values.const_data_ptr<double>() + i * width, width, row);
    row[width] = each.const_data_ptr<double>()[i];
    row[width + 1] = weight.const_data_ptr<double>()[i];
    row[width + 2] = bad.const_data_ptr<double>()[i];
  }
}

}  // namespace

LabelOutputs::LabelOutputs(const experiment::TextClassificationOptions& options,
                           const data::Labels* labels, std::vector<double> weights)
    : target_(target_of(options.data)),
      num_outputs_(labels == nullptr ? 1 : labels->size()),
      smoothing_(options.loss.label_smoothing),
      weights_(std::move(weights)) {}

at::Tensor LabelOutputs::labels_of(const data::Batch& batch, at::Device device) const {
  return at::tensor(batch.column<int64_t>(kLabelColumn).values, at::kLong).to(device);
}

at::Tensor LabelOutputs::indicators_of(const data::Batch& batch, at::Device device) const {
  const auto& labels = batch.column<int64_t>(kLabelColumn);
  at::Tensor indicators = at::zeros({batch.num_sequences(), num_outputs_}, at::kFloat);
  auto* values = indicators.mutable_data_ptr<float>();
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    for (const int64_t label : labels.sequence(i)) values[i * num_outputs_ + label] = 1;
  }
  return indicators.to(device);
}

at::Tensor LabelOutputs::values_of(const data::Batch& batch, at::Device device) const {
  return at::tensor(batch.column<float>(kLabelColumn).values, at::kFloat).to(device);
}

models::LabelLosses LabelOutputs::losses(const at::Tensor& logits, const data::Batch& batch) const {
  const at::Device device = logits.device();
  const at::Tensor weights =
      weights_.empty() ? at::Tensor() : at::tensor(weights_, at::kFloat).to(device);
  switch (target_) {
    case LabelTarget::kSeveral:
      return models::binary_cross_entropy(logits, indicators_of(batch, device), weights);
    case LabelTarget::kValue:
      return models::squared_error(logits, values_of(batch, device));
    case LabelTarget::kOne:
      break;
  }
  return models::label_cross_entropy(logits, labels_of(batch, device),
                                     {.of_classes = weights, .smoothing = smoothing_});
}

double LabelOutputs::weight(const data::Batch& batch) const {
  if (target_ != LabelTarget::kOne || weights_.empty()) {
    return static_cast<double>(batch.num_sequences());
  }
  double sum = 0;
  for (const int64_t label : batch.column<int64_t>(kLabelColumn).values) {
    sum += static_cast<double>(static_cast<float>(weights_[static_cast<size_t>(label)]));
  }
  return sum;
}

at::Tensor LabelOutputs::num_right(const at::Tensor& logits, const data::Batch& batch) const {
  switch (target_) {
    case LabelTarget::kValue:
      return at::zeros({}, logits.options());
    case LabelTarget::kSeveral:
      return (logits >= 0)
          .eq(indicators_of(batch, logits.device()) > 0)
          .all(1)
          .sum()
          .to(logits.scalar_type());
    case LabelTarget::kOne:
      break;
  }
  return logits.argmax(1).eq(labels_of(batch, logits.device())).sum().to(logits.scalar_type());
}

at::Tensor LabelOutputs::probabilities(const at::Tensor& logits) const {
  switch (target_) {
    case LabelTarget::kSeveral:
      return logits.sigmoid();
    case LabelTarget::kOne:
      return logits.softmax(1);
    case LabelTarget::kValue:
      break;
  }
  return logits;
}

at::Tensor LabelOutputs::mean_logits(const std::vector<at::Tensor>& logits) const {
  if (logits.size() == 1) return logits.front();
  at::Tensor sum = at::zeros_like(logits.front(), at::kDouble);
  for (const auto& one : logits) sum += probabilities(one.to(at::kDouble));
  const at::Tensor mean = sum / static_cast<double>(logits.size());
  switch (target_) {
    case LabelTarget::kSeveral:
      return at::logit(mean);
    case LabelTarget::kOne:
      return mean.log();
    case LabelTarget::kValue:
      break;
  }
  return mean;
}

std::vector<double> class_weights(const experiment::TextClassificationOptions& options,
                                  const data::Labels* labels, const data::Batch& train) {
  const auto& loss = options.loss;
  if (labels == nullptr || loss.class_weights == "none") return {};
  const auto size = static_cast<size_t>(labels->size());
  if (loss.class_weights == "list") {
    data::require_weight_of_each(*labels, loss.class_weight_list.size());
    return loss.class_weight_list;
  }
  std::vector<double> counts(size);
  for (const int64_t label : train.column<int64_t>(kLabelColumn).values) {
    counts[static_cast<size_t>(label)] += 1;
  }
  std::vector<double> weights(size, 1);
  for (size_t i = 0; i < size; ++i) {
    if (counts[i] == 0) continue;
    weights[i] =
        static_cast<double>(train.num_sequences()) / (static_cast<double>(size) * counts[i]);
  }
  return weights;
}

at::Tensor label_logits(models::TextModel& model, const data::Batch& batch,
                        const models::ForwardContext& context) {
  return model.labels().logits(model.pooled(pack_texts(batch, model), context));
}

BatchPredictions predict_batch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                               const LabelOutputs& outputs, const data::Batch& batch) {
  std::vector<at::Tensor> logits;
  for (const auto& model : models) logits.push_back(label_logits(*model, batch, {}));
  const at::Tensor mean = outputs.mean_logits(logits);
  return {.mean_logits = mean,
          .probabilities = outputs.probabilities(mean),
          .overflowed = overflowed_rows(logits)};
}

LabelPredictions predict_labels(const std::vector<std::shared_ptr<models::TextModel>>& models,
                                const LabelOutputs& outputs, const data::LabelledSet& set,
                                const PredictOptions& options) {
  const at::Device device = models.front()->device();
  const auto samples = std::make_shared<data::SamplesInMemory>(set.samples);
  const auto batches = data::make_length_batches(
      samples,
      {.max_rows = {batch_tokens(options.max_tokens, device)}, .max_samples = options.max_samples},
      data::Shuffle::kNo, /*seed=*/0);
  const int64_t width = outputs.num_outputs();
  std::vector<double> table(static_cast<size_t>(set.size() * (width + kColumnsBehind)));
  ParallelJobs passes(device);
  passes.run_share(options.group, batches->num_batches(), [&](int64_t i) {
    const data::Batch batch = batches->load(0, i);
    const auto predicted = predict_batch(models, outputs, batch);
    fill_rows(predicted, outputs.losses(predicted.mean_logits, batch), batch, table);
  });
  distributed::sum_numbers(options.group, table);  // of zeros and one number: exact
  LabelPredictions found{.outputs = {}, .losses = {}, .overflowed = {}, .num_outputs = width};
  double sum = 0, divisor = 0;
  for (auto row = table.cbegin(); row != table.cend(); row += width + kColumnsBehind) {
    found.outputs.insert(found.outputs.end(), row, row + width);
    found.losses.push_back(row[width]);
    found.overflowed.push_back(row[width + 2] != 0 ? 1 : 0);
    sum += row[width];
    divisor += row[width + 1];
  }
  found.loss = divisor > 0 ? sum / divisor : 0;
  return found;
}

std::vector<int64_t> chosen_labels(LabelTarget target, std::span<const double> probabilities) {
  std::vector<int64_t> chosen;
  if (target == LabelTarget::kSeveral) {
    for (size_t i = 0; i < probabilities.size(); ++i) {
      if (probabilities[i] >= kChosen) chosen.push_back(static_cast<int64_t>(i));
    }
    return chosen;
  }
  chosen.push_back(std::max_element(probabilities.begin(), probabilities.end()) -
                   probabilities.begin());
  return chosen;
}

std::vector<train::Score> label_scores(const LabelOutputs& outputs,
                                       const LabelPredictions& predictions,
                                       const data::LabelledSet& set) {
  const auto own = [&] {
    if (outputs.target() == LabelTarget::kValue) return value_scores(predictions, set);
    if (outputs.target() == LabelTarget::kSeveral) return several_label_scores(predictions, set);
    return one_label_scores(predictions, set);
  };
  std::vector<train::Score> scores{{.name = "loss", .value = predictions.loss}};
  for (auto& score : own()) scores.push_back(std::move(score));
  return scores;
}

}  // namespace stretto::tasks
