#include "families/text_classification/engine/text_classification_family.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "data/labelled/labelled_samples.h"
#include "families/text/engine/encoder_family.h"
#include "families/text_classification/engine/commands.h"
#include "families/text_classification/engine/text_classification.h"
#include "families/text_classification/text_classification_options.h"
#include "tasks/open_initial_run.h"

namespace stretto::tasks {
namespace {

const experiment::TextClassificationOptions& sections_of(const experiment::Experiment& experiment) {
  return experiment.task.as<experiment::TextClassificationOptions>();
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

// The labels of the run that `train.init_from` names, if it has some.
std::optional<data::Labels> labels_of_other_run(const experiment::Experiment& experiment) {
  if (experiment.train.init_from.empty()) return std::nullopt;
  const auto run = open_initial_run(experiment, runs::Reading::kHeads);
  const auto found = run.tokenizer.find(kLabelsAsset);
  if (found == run.tokenizer.end()) return std::nullopt;
  return data::labels_from_json(found->second, (run.folder / kLabelsAsset).string());
}

// Warns of labels that were found in the texts; one alone is enough where a text may have none.
void warn_of_wrong_column(const experiment::TextClassificationOptions& options, int64_t num_labels,
                          int64_t num_texts) {
  constexpr int64_t kFewTexts = 20;
  const auto& data = options.data;
  const std::string all = "data.train: " + counted(num_texts, "text") + " with ";
  const std::string remedy = ": is data.label = \"" + printable(data.label, 60) + "\" the label?";
  if (num_labels == 1 && data.label_separator.empty()) {
    log::warn(all + "one label only, so that there is nothing to learn" + remedy);
  } else if (num_texts > kFewTexts && num_labels >= num_texts - num_labels) {
    log::warn(all + counted(num_labels, "label") + ", nearly as many" + remedy);
  }
}

void warn_of_labels_alike(const data::LabelledOptions& data, const data::Labels& labels) {
  for (const auto& alike : data::labels_alike(labels.names())) {
    log::warn((data.labels.empty() ? "data.train: labels " : "data.labels: ") + alike + "; " +
              data::kLabelsAlikeAdvice);
  }
}

// Another run's head means the labels in its own order: with the same labels that order is taken.
std::optional<data::Labels> first_labels(const experiment::Experiment& experiment) {
  const auto& data = sections_of(experiment).data;
  const auto texts = data::finds_labels(data) ? data::open_training_texts(data) : nullptr;
  auto own = data::labels_of(data, texts ? &texts->facts() : nullptr);
  if (!own) return own;
  if (texts) warn_of_wrong_column(sections_of(experiment), own->size(), texts->size());
  warn_of_labels_alike(data, *own);
  const auto others = labels_of_other_run(experiment);
  if (!others || others->names() == own->names()) return own;
  const bool same_names = sorted(others->names()) == sorted(own->names());
  if (same_names && data.labels.empty()) {
    log::info("labels in the order of " + experiment.train.init_from + ": " +
              printable(join(others->names(), ", "), 1000));
    return others;
  }
  if (others->size() == own->size()) {
    log::warn("train.init_from: the run has other labels, or another order (" +
              printable(join(others->names(), ", "), 1000) +
              "), and its head is taken all the same; train.init_only = [\"encoder.*\"] leaves it");
  }
  return own;
}

class TextClassificationFamily : public EncoderFamily {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    // Labels first: to train a tokenizer takes longer than to find a wrong column.
    const auto labels = first_labels(experiment.options);
    Assets assets = TextFamily::first_assets(experiment);
    assets[kLabelsAsset] = data::labels_to_json(labels ? &*labels : nullptr);
    return assets;
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<TextClassificationTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_labels(request, context);
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    return infer_labels(request, context);
  }

  std::vector<std::string> output_names(const Assets& assets) const override {
    const auto found = assets.find(kLabelsAsset);
    if (found == assets.end()) return {};
    const auto labels = data::labels_from_json(found->second, kLabelsAsset);
    return labels ? labels->names() : std::vector<std::string>();
  }

 protected:
  std::unique_ptr<text::LineSource> training_text(
      const experiment::Experiment& experiment) const override {
    const auto& data = sections_of(experiment).data;
    return data::lines_of([&data] { return data::open_training_texts(data); });
  }

  TextHead head(const experiment::Experiment& experiment, const Assets* assets) const override {
    const auto& options = sections_of(experiment);
    if (assets != nullptr) return label_head_of_run(experiment, *assets);
    const auto given = static_cast<int64_t>(options.data.labels.size());
    TextHead head = label_head(nullptr);
    if (!options.data.is_regression()) head.num_labels = given > 0 ? given : 2;
    return head;
  }

  double head_rows(const experiment::Experiment& /*experiment*/, double /*tokens*/) const override {
    return 1;
  }
};

}  // namespace

const Family& text_classification_family() {
  static const TextClassificationFamily family;
  return family;
}

}  // namespace stretto::tasks
