#include "families/text_classification/engine/label_outputs.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/encoder_task.h"
#include "families/text_classification/text_classification_display.h"
#include "families/text_classification/text_classification_options.h"
#include "metrics/label_counts.h"
#include "metrics/value_pairs.h"

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
                                       const data::LabelledSamples& set) {
  metrics::ValuePairs pairs(set.size());
  const data::Batch gold = set.labels();
  const auto& values = gold.column<float>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    pairs.add(i, values.sequence(i).front(), predictions.of(i).front());
  }
  return {{.name = score_key::kPearson, .value = or_zero(pairs.pearson())},
          {.name = score_key::kSpearman, .value = or_zero(pairs.spearman())},
          {.name = score_key::kMse, .value = pairs.mean_squared_error()}};
}

std::vector<train::Score> one_label_scores(const LabelPredictions& predictions,
                                           const data::LabelledSamples& set) {
  metrics::LabelCounts counts(predictions.num_outputs());
  const data::Batch gold = set.labels();
  const auto& labels = gold.column<int64_t>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    counts.add(labels.sequence(i).front(),
               chosen_labels(LabelTarget::kOne, predictions.of(i)).front());
  }
  const double macro = counts.macro_f1();
  return {{.name = score_key::kAccuracy, .value = counts.accuracy()},
          {.name = score_key::kF1, .value = predictions.num_outputs() == 2 ? counts.f1(1) : macro},
          {.name = score_key::kMacroF1, .value = macro},
          {.name = score_key::kMatthews, .value = counts.matthews()}};
}

std::vector<train::Score> several_label_scores(const LabelPredictions& predictions,
                                               const data::LabelledSamples& set) {
  metrics::MultiLabelCounts counts(predictions.num_outputs());
  const data::Batch gold = set.labels();
  const auto& labels = gold.column<int64_t>(kLabelColumn);
  for (int64_t i = 0; i < set.size(); ++i) {
    counts.add(labels.sequence(i), chosen_labels(LabelTarget::kSeveral, predictions.of(i)));
  }
  return {{.name = score_key::kAccuracy, .value = counts.exact_match()},
          {.name = score_key::kF1, .value = counts.micro_f1()},
          {.name = score_key::kMacroF1, .value = counts.macro_f1()}};
}

/// For each sample whether some logit is infinite or NaN: fp64 [B] of 0 and 1.
at::Tensor overflowed_rows(const std::vector<at::Tensor>& logits) {
  at::Tensor finite = logits.front().isfinite().all(1);
  for (size_t i = 1; i < logits.size(); ++i) finite &= logits[i].isfinite().all(1);
  return finite.logical_not().to(at::kDouble);
}

}  // namespace

LabelOutputs::LabelOutputs(const experiment::TextClassificationOptions& options,
                           const data::Labels* labels, std::vector<double> weights)
    : target_(target_of(options.data)),
      num_outputs_(labels == nullptr ? 1 : labels->size()),
      smoothing_(options.loss.label_smoothing),
      weights_(std::move(weights)) {}

at::Tensor LabelOutputs::targets_of(const train::Prepared& batch) const {
  if (target_ != LabelTarget::kSeveral) return batch.column(kLabelColumn);
  const auto& labels = batch.batch().column<int64_t>(kLabelColumn);
  at::Tensor indicators = at::zeros({labels.num_sequences(), num_outputs_}, at::kFloat);
  auto* values = indicators.mutable_data_ptr<float>();
  for (int64_t i = 0; i < labels.num_sequences(); ++i) {
    for (const int64_t label : labels.sequence(i)) values[i * num_outputs_ + label] = 1;
  }
  return indicators;
}

models::LabelLosses LabelOutputs::losses(const at::Tensor& logits,
                                         const at::Tensor& targets) const {
  const at::Tensor weights =
      weights_.empty() ? at::Tensor() : at::tensor(weights_, at::kFloat).to(logits.device());
  return models::label_losses(target_, logits, targets,
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

at::Tensor LabelOutputs::num_right(const at::Tensor& logits, const at::Tensor& targets) const {
  return models::num_labels_right(target_, logits, targets);
}

at::Tensor LabelOutputs::probabilities(const at::Tensor& logits) const {
  return models::label_predictions(target_, logits);
}

at::Tensor LabelOutputs::mean_logits(const std::vector<at::Tensor>& logits) const {
  return models::mean_label_logits(target_, logits);
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

at::Tensor label_logits(models::TextModel& model, const train::Prepared& texts,
                        const models::ForwardContext& context) {
  return model.labels().logits(model.pooled(texts.rows(), context));
}

train::Prepared prepare_labelled(data::Batch batch, const models::TextModel& model,
                                 const LabelOutputs& outputs) {
  train::Prepared made = prepare_texts(std::move(batch), model);
  made.add(outputs.targets_of(made));
  return made;
}

BatchPredictions predict_batch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                               const LabelOutputs& outputs, const train::Prepared& texts) {
  std::vector<at::Tensor> logits;
  for (const auto& model : models) logits.push_back(label_logits(*model, texts, {}));
  const at::Tensor mean = outputs.mean_logits(logits);
  return {.mean_logits = mean,
          .probabilities = outputs.probabilities(mean),
          .overflowed = overflowed_rows(logits)};
}

double LabelPredictions::loss() const {
  const double divisor = table_.sum(num_outputs_ + 1);
  return divisor > 0 ? table_.sum(num_outputs_) / divisor : 0;
}

LabelBatches label_batches(std::shared_ptr<const data::LengthSamples> samples,
                           const experiment::TextEvalOptions& eval, at::Device device) {
  const auto count = static_cast<int64_t>(samples->runs().begins.back());
  return {data::make_length_batches(std::move(samples),
                                    {.max_rows = {batch_tokens(eval.max_tokens, device)},
                                     .max_samples = eval.max_samples},
                                    data::Shuffle::kNo, /*seed=*/0),
          count};
}

LabelPredictions predict_labels(const std::vector<std::shared_ptr<models::TextModel>>& models,
                                const LabelOutputs& outputs, const LabelBatches& set,
                                train::EvaluationSetup setup) {
  const int64_t width = outputs.num_outputs();
  setup.prepare = [&](data::Batch batch) {
    return prepare_labelled(std::move(batch), *models.front(), outputs);
  };
  const auto score = [&](int64_t /*part*/, std::span<const train::Prepared> read,
                         train::ScoreTable& table) {
    const train::Prepared& batch = read.front();
    const auto predicted = predict_batch(models, outputs, batch);
    const auto losses = outputs.losses(predicted.mean_logits, batch.tensor());
    const auto& samples = batch.batch().sample_ids;
    table.fill(samples, 0, predicted.probabilities);
    table.fill(samples, width, losses.each);
    table.fill(samples, width + 1, losses.weight);
    table.fill(samples, width + 2, predicted.overflowed);
  };
  constexpr int64_t kBehindOutputs = 3;
  return {train::evaluate(train::parts_of(*set.batches),
                          train::ScoreTable(set.num_samples, width + kBehindOutputs), setup, score),
          width};
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
                                       const data::LabelledSamples& set) {
  const auto own = [&] {
    if (outputs.target() == LabelTarget::kValue) return value_scores(predictions, set);
    if (outputs.target() == LabelTarget::kSeveral) return several_label_scores(predictions, set);
    return one_label_scores(predictions, set);
  };
  std::vector<train::Score> scores{{.name = score_key::kLoss, .value = predictions.loss()}};
  for (auto& score : own()) scores.push_back(std::move(score));
  return scores;
}

}  // namespace stretto::tasks
