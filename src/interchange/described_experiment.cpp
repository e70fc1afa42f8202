#include "interchange/described_experiment.h"

#include <algorithm>

#include "base/error.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/schedule_length.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text/text_sections.h"
#include "families/text_classification/text_classification_options.h"

namespace stretto::interchange {
namespace {

using experiment::Experiment;
using experiment::MaskedLmOptions;
using experiment::QuestionAnsweringOptions;
using experiment::TextClassificationOptions;

constexpr const char* kLabelSeparator = ",";
constexpr int64_t kUpdates = 10'000;       // a configuration needs an end; nothing trains here
constexpr int64_t kMostSpecialTokens = 4;  // around a question and its paragraph

template <class Sections>
Sections common_sections(const ModelDescription& description, bool byte_bpe, int64_t max_tokens) {
  Sections sections;
  sections.model = description.model;
  sections.model.head = description.head == Head::kNone ? "none" : "auto";
  sections.tokenizer.type = byte_bpe ? "byte_bpe" : "wordpiece";
  sections.data.max_text_tokens = max_tokens;
  sections.data.max_tokens = std::max(sections.data.max_tokens, max_tokens);
  return sections;
}

// Windows overlap by half where a paragraph has little room.
void fit_windows(QuestionAnsweringOptions& sections) {
  auto& data = sections.data;
  data.max_question_tokens = std::min(data.max_question_tokens, data.max_text_tokens / 4);
  const int64_t room = data.max_text_tokens - data.max_question_tokens - kMostSpecialTokens;
  data.stride = std::clamp<int64_t>(data.stride, 1, std::max<int64_t>(room / 2, 1));
}

TextClassificationOptions classification(const ModelDescription& description, bool byte_bpe,
                                         int64_t max_tokens) {
  auto sections = common_sections<TextClassificationOptions>(description, byte_bpe, max_tokens);
  switch (description.label_kind) {
    case LabelKind::kNumber:
      sections.data.label_kind = "number";
      return sections;
    case LabelKind::kSeveral:
      sections.data.label_separator = kLabelSeparator;
      break;
    case LabelKind::kOne:
      break;
  }
  sections.data.labels = description.labels;
  return sections;
}

// Problems have lines of a text that was made of config.json, and that nobody sees.
std::string without_lines(std::string problems, const std::string& where) {
  const std::string end = ": ";
  for (size_t at = problems.find(where + ":"); at != std::string::npos;
       at = problems.find(where + ":")) {
    const size_t last = problems.find(end, at + where.size());
    problems.erase(at, last == std::string::npos ? last : last + end.size() - at);
  }
  return problems;
}

LabelKind kind_of_labels(const data::LabelledOptions& data) {
  if (data.is_regression()) return LabelKind::kNumber;
  return data.has_several_labels() ? LabelKind::kSeveral : LabelKind::kOne;
}

}  // namespace

Experiment described_experiment(const ModelDescription& description, bool byte_bpe,
                                int64_t max_tokens) {
  const int64_t positions = description.model.max_positions;
  const int64_t longest = max_tokens > 0 ? std::min(max_tokens, positions) : positions;
  Experiment experiment;
  experiment.train.max_steps = kUpdates;
  switch (description.head) {
    case Head::kNone:
    case Head::kMaskedTokens:
      experiment.task = common_sections<MaskedLmOptions>(description, byte_bpe, longest);
      break;
    case Head::kLabels:
      experiment.task = classification(description, byte_bpe, longest);
      break;
    case Head::kSpans: {
      auto sections = common_sections<QuestionAnsweringOptions>(description, byte_bpe, longest);
      fit_windows(sections);
      experiment.task = sections;
      break;
    }
  }
  experiment::resolve_defaults(experiment, config::Origins());  // the first score of its task
  return experiment;
}

experiment::LoadedExperiment load_described(const Experiment& described,
                                            const std::filesystem::path& folder) {
  Experiment options = described;
  const std::string where = (folder / "config.json").string();
  try {
    return experiment::load_stored_experiment(
        config::to_toml(experiment::experiment_schema(options)), where, {});
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    throw Error(
        ExitCode::kBadData,
        where + " describes a model that Stretto refuses: " + without_lines(error.what(), where),
        "keys are named as in the configuration of a run; correct config.json, or copy it again");
  }
}

Head head_of(const Experiment& experiment) {
  if (experiment.task.is<MaskedLmOptions>()) return Head::kMaskedTokens;
  if (experiment.task.is<QuestionAnsweringOptions>()) return Head::kSpans;
  return experiment.task.is<TextClassificationOptions>() ? Head::kLabels : Head::kNone;
}

ModelDescription describe(const Experiment& experiment, int64_t num_ids, int64_t pad_id,
                          const std::vector<std::string>& labels) {
  ModelDescription description{.model = *experiment::text_sections(experiment).model,
                               .vocab_size = num_ids,
                               .pad_id = pad_id};
  if (description.model.head == "none") return description;
  description.head = head_of(experiment);
  if (description.head == Head::kLabels) {
    description.label_kind = kind_of_labels(experiment.task.as<TextClassificationOptions>().data);
    description.labels = labels;
    if (description.label_kind == LabelKind::kNumber) description.labels = {"LABEL_0"};
  }
  return description;
}

}  // namespace stretto::interchange
