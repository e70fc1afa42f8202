#include "families/text_classification/text_classification_folders.h"

#include <utility>

#include "families/text/folders/text_folders.h"
#include "families/text/text_rules.h"
#include "families/text_classification/text_classification_options.h"
#include "interchange/described_experiment.h"

namespace stretto::interchange {
namespace {

using experiment::TextClassificationOptions;

constexpr const char* kLabelSeparator = ",";

LabelKind kind_of_labels(const data::LabelledOptions& data) {
  if (data.is_regression()) return LabelKind::kNumber;
  return data.has_several_labels() ? LabelKind::kSeveral : LabelKind::kOne;
}

class TextClassificationFolders final : public TextFolders {
 public:
  Head head() const override { return Head::kLabels; }

  experiment::Experiment experiment_of(const ModelDescription& description,
                                       const FolderTexts& texts) const override {
    auto sections = sections_of_folder<TextClassificationOptions>(description, texts);
    if (description.label_kind == LabelKind::kNumber) {
      sections.data.label_kind = "number";
    } else {
      if (description.label_kind == LabelKind::kSeveral) {
        sections.data.label_separator = kLabelSeparator;
      }
      sections.data.labels = description.labels;
    }
    return described_experiment(std::move(sections));
  }

  bool begins_with(const experiment::Experiment& other) const override {
    return experiment::find_causal_stack(other).has_value();
  }

  void add_labels(const experiment::Experiment& run, const std::vector<std::string>& names,
                  ModelDescription& description) const override {
    description.label_kind = kind_of_labels(run.task.as<TextClassificationOptions>().data);
    description.labels = names;
    if (description.label_kind == LabelKind::kNumber) description.labels = {"LABEL_0"};
  }
};

}  // namespace

const ModelFolders& text_classification_folders() {
  static const TextClassificationFolders folders;
  return folders;
}

}  // namespace stretto::interchange
