#include "families/text_classification/engine/text_classification.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/length_batches.h"
#include "data/text_columns.h"
#include "families/text_classification/text_classification_display.h"
#include "families/text_classification/text_classification_options.h"

namespace stretto::tasks {
namespace {

using data::kLabelColumn;

const experiment::TextClassificationOptions& classification_of(
    const experiment::Experiment& experiment) {
  return experiment.task.as<experiment::TextClassificationOptions>();
}

std::string value_text(double value) {
  return fixed(value, 3);
}

}  // namespace

std::optional<data::Labels> labels_of(const Assets& assets,
                                      const experiment::TextClassificationOptions& options) {
  if (options.data.is_regression()) return std::nullopt;
  const auto found = assets.find(kLabelsAsset);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage, std::string("the run has no ") + kLabelsAsset,
                "copy the run folder again with its tokenizer folder; a run that was imported "
                "without labels only embeds");
  }
  auto labels = data::labels_from_json(found->second, kLabelsAsset);
  if (labels) return labels;
  throw Error(ExitCode::kBadData, std::string(kLabelsAsset) + " has no labels",
              "it is of a run that predicts a number: set data.label_kind = \"number\"");
}

TextHead label_head(const data::Labels* labels) {
  return {.kind = models::TextHeadKind::kLabels,
          .num_labels = labels == nullptr ? 1 : labels->size()};
}

TextHead label_head_of_run(const experiment::Experiment& experiment, const Assets& assets) {
  const auto labels = labels_of(assets, classification_of(experiment));
  return label_head(labels ? &*labels : nullptr);
}

std::string label_text(const data::Batch& batch, int64_t index, const data::Labels* labels) {
  if (labels == nullptr) {
    return value_text(batch.column<float>(kLabelColumn).sequence(index).front());
  }
  std::vector<std::string> names;
  for (const int64_t label : batch.column<int64_t>(kLabelColumn).sequence(index)) {
    names.push_back(labels->name(label));
  }
  return names.empty() ? "none" : join(names, ", ");
}

TextClassificationTask::TextClassificationTask(const experiment::Experiment& experiment,
                                               const Assets& assets, const CommandContext& context)
    : TextClassificationTask(experiment, assets, context,
                             labels_of(assets, classification_of(experiment))) {}

TextClassificationTask::TextClassificationTask(const experiment::Experiment& experiment,
                                               const Assets& assets, const CommandContext& context,
                                               std::optional<data::Labels> labels)
    : EncoderTask(experiment, assets, label_head(labels ? &*labels : nullptr), context),
      options_(classification_of(experiment)),
      labels_(std::move(labels)) {
  const auto& data = options_.data;
  const auto open = [&](const std::vector<std::string>& files) {
    auto samples = data::open_labelled_samples(files, data, tokenizer(), this->labels());
    const auto& headers = samples->counts().samples_as_header;
    samples_as_header_.insert(headers.begin(), headers.end());
    return samples;
  };
  const auto train = open(data.train);
  const bool is_balanced = options_.loss.class_weights == "balanced";
  outputs_.emplace(
      options_, this->labels(),
      class_weights(options_, this->labels(), is_balanced ? train->labels() : data::Batch{}));
  facts_.push_back(facts_of("training text", *train));
  if (!data.valid.empty()) {
    valid_ = open(data.valid);
    valid_batches_ = label_batches(valid_, options_.eval, device());
    facts_.push_back(facts_of("validation text", *valid_));
  }
  set_train_batches(data::make_length_batches(
      train, {.max_rows = {data.max_tokens}, .max_samples = data.max_samples},
      data::Shuffle::kEachEpoch, static_cast<uint64_t>(experiment.run.seed)));
  if (options_.loss.has_teacher()) {
    teacher_.emplace(experiment, assets, &label_head_of_run, device());
  }
}

std::vector<std::string> TextClassificationTask::statistics() const {
  if (outputs_->target() == LabelTarget::kValue) return {};
  return {"right"};
}

std::vector<std::pair<std::string, std::string>> TextClassificationTask::show(
    const data::Batch& batch, int64_t index) const {
  auto shown = TextTask::show(batch, index);
  shown.emplace_back("label", label_text(batch, index, labels()));
  return shown;
}

train::Prepared TextClassificationTask::prepare(data::Batch batch) const {
  return prepare_labelled(std::move(batch), text_model(), *outputs_);
}

train::Sums TextClassificationTask::loss(const train::Prepared& batch,
                                         const train::StepContext& context) {
  const auto pass = label_pass(text_model(), batch, training_context(context),
                               teacher_ ? teacher_->parts() : PassParts{});
  const at::Tensor& logits = pass.logits;
  const auto own = outputs_->losses(logits, batch.tensor());
  const at::Tensor each = teacher_ ? teacher_->losses(*outputs_, batch, pass, own) : own.each;
  train::Sums sums{.losses = {each.sum()},
                   .statistics = {},
                   .counts = {data::tokens(batch).num_rows(), batch.batch().num_sequences()}};
  if (outputs_->target() != LabelTarget::kValue) {
    sums.statistics.push_back(outputs_->num_right(logits.detach(), batch.tensor()));
  }
  return sums;
}

std::vector<double> TextClassificationTask::weights(const data::Batch& batch) const {
  return {outputs_->weight(batch)};
}

std::vector<train::Score> TextClassificationTask::measures(const train::Totals& totals) const {
  if (totals.statistics.empty()) return {};
  const auto texts = static_cast<double>(totals.counts.at(1));
  return {
      {.name = score_key::kAccuracy, .value = texts > 0 ? totals.statistics.front() / texts : 0}};
}

train::Validation TextClassificationTask::validate() {
  const auto predictions =
      predict_labels({shared_model()}, *outputs_, valid_batches_, evaluation());
  train::Validation result;
  result.scores = label_scores(*outputs_, predictions, *valid_);
  result.counts = {{"tokens", valid_->num_tokens()}, {"texts", valid_->size()}};
  result.samples = label_samples(*outputs_, labels(), predictions, *valid_,
                                 static_cast<size_t>(experiment().report.samples));
  return result;
}

void TextClassificationTask::require_known_data(bool warn) const {
  TextTask::require_known_data(warn);
  if (!warn) return;
  for (const auto& place : samples_as_header_) warn_of_sample_as_header(place);
}

void warn_of_sample_as_header(const std::string& place) {
  log::warn(data::sample_as_header_text(place) + "; " + data::kSampleAsHeaderAdvice);
}

TextFacts TextClassificationTask::facts_of(const std::string& name,
                                           const data::LabelledSamples& set) const {
  const auto& found = set.counts();
  TextFacts facts{.name = name,
                  .hash = found.hash,
                  .samples = set.size(),
                  .counts = {.tokens = set.num_tokens(), .unknown = found.unknown},
                  .cut_samples = found.cut_samples,
                  .cut_tokens = found.cut_tokens,
                  .left_out = found.bad};
  if (found.skipped > 0) {
    facts.more.emplace_back("left out", counted(found.skipped, "row") + " labelled " +
                                            printable(options_.data.skipped_label, 60));
  }
  if (labels() == nullptr) return facts;
  const std::vector<int64_t> counts = set.label_counts(labels()->size());
  constexpr size_t kMost = 20;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(counts.size(), kMost); ++i) {
    parts.push_back(printable(labels()->name(static_cast<int64_t>(i)), 60) + " " +
                    with_thousands(counts[i]));
  }
  if (counts.size() > kMost) parts.push_back("…");
  facts.more.emplace_back("labels", join(parts, ", "));
  return facts;
}

}  // namespace stretto::tasks
