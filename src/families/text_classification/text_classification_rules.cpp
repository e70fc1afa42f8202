#include "families/text_classification/text_classification_rules.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/text.h"
#include "data/labelled/labelled_file.h"
#include "data/labelled/labelled_samples.h"
#include "data/labelled/labelled_set.h"
#include "data/labelled/labelled_texts.h"
#include "families/text/encoder_rules.h"
#include "families/text/prepared_text.h"
#include "families/text/text_size.h"
#include "families/text_classification/text_classification_display.h"
#include "families/text_classification/text_classification_options.h"
#include "families/text_classification/text_classification_preflight.h"
#include "models/causal_options.h"
#include "models/label_model_options.h"

namespace stretto::experiment {
namespace {

// Tokens of a text, where it may have as many.
constexpr int64_t kUsualTextTokens = 128;

const TextClassificationOptions& classification_of(const Experiment& experiment) {
  return experiment.task.as<TextClassificationOptions>();
}

// Keys that only classes have.
void check_regression(RuleCheck& c) {
  const auto& e = classification_of(c.e);
  if (!e.data.is_regression()) return;
  const auto refuse = [&](bool given, const std::string& key, const std::string& what) {
    if (given) {
      c.wrong({key, "data.label_kind"}, what + ", and data.label_kind = \"number\" has no classes",
              "leave it out");
    }
  };
  refuse(e.data.has_several_labels(), "data.label_separator", "a text has several labels");
  refuse(!e.data.labels.empty(), "data.labels", "labels are listed");
  refuse(!e.data.label_until.empty(), "data.label_until", "labels are cut");
  refuse(e.loss.class_weights != "none", "loss.class_weights", "classes have weights");
  refuse(e.loss.label_smoothing > 0, "loss.label_smoothing", "labels are smoothed");
}

void check_class_weights(RuleCheck& c) {
  const auto& [data, tokenizer, model, loss, eval] = classification_of(c.e);
  const bool listed = loss.class_weights == "list";
  if (listed && loss.class_weight_list.empty()) {
    c.wrong({"loss.class_weights", "loss.class_weight_list"}, "no weights are listed",
            "set loss.class_weight_list, a weight for each label");
  } else if (!listed && !loss.class_weight_list.empty()) {
    c.wrong({"loss.class_weight_list", "loss.class_weights"},
            "stands beside loss.class_weights = \"" + loss.class_weights + "\"",
            "set loss.class_weights = \"list\"");
  } else if (listed && !data.labels.empty() &&
             loss.class_weight_list.size() != data.labels.size()) {
    c.wrong({"loss.class_weight_list", "data.labels"},
            counted(static_cast<int64_t>(loss.class_weight_list.size()), "weight") + " for " +
                counted(static_cast<int64_t>(data.labels.size()), "label"),
            "give a weight for each label, in the order of data.labels");
  }
}

void check_labels(RuleCheck& c) {
  const auto& e = classification_of(c.e);
  auto names = e.data.labels;
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    c.wrong({"data.labels"}, "label `" + printable(*twice, 60) + "` occurs twice",
            "give each label once");
  } else if (!names.empty() && names.front().empty()) {
    c.wrong({"data.labels"}, "a label is empty", "give each label a name");
  }
  const auto wrapped = std::find_if_not(names.begin(), names.end(), data::is_one_line);
  if (wrapped != names.end()) {
    c.wrong({"data.labels"}, "label `" + printable(*wrapped, 60) + "` has a tab or a line end",
            "labels are written one a line: leave it out of the name");
  }
  if (e.loss.label_smoothing > 0 && e.data.has_several_labels()) {
    c.wrong({"loss.label_smoothing", "data.label_separator"},
            "smooths one label a text, and a text may have several", "set it to 0");
  }
}

// Hidden and cell state side by side.
void check_pooling(RuleCheck& c) {
  const auto& model = classification_of(c.e).model;
  if (models::causal_pool_of(model).pooling != "state") return;
  const auto stack = models::causal_stack_of(model);
  const bool has_cells = stack.is<models::CausalLstmModelOptions>() &&
                         stack.as<models::CausalLstmModelOptions>().cell != "gru";
  if (has_cells) {
    if (models::adapter_of(model).is_on()) {
      c.wrong({"model.pooling", "model.adapter.dim"},
              "\"state\" is read in front of the adapter of the last layer",
              "use \"last\" or \"concat\"");
    }
    return;
  }
  c.wrong({"model.pooling", "model.name", "model.cell"},
          "\"state\" is the hidden and the cell state of an LSTM, and this model has no cells",
          "use \"last\" or \"concat\", or model.name = \"lstm\" with another cell than \"gru\"");
}

// Which takes its statistics over texts.
void check_head_norm(RuleCheck& c) {
  const auto& own = classification_of(c.e);
  const bool is_alone = own.data.max_samples == 1 && c.e.dist.batch_norm != "all";
  if (!is_alone || !models::causal_pool_of(own.model).has_batch_norm()) return;
  c.wrong({"model.head_norm", "data.max_samples"},
          "batch norm takes mean and variance over the texts of a micro-batch, and each has one",
          "raise data.max_samples to 16 or more, or use model.head_norm = \"none\"");
}

// Relations are those of rows.
void check_teacher_hidden(RuleCheck& c) {
  const auto& own = classification_of(c.e);
  if (own.loss.teacher_attention > 0 && !own.loss.has_teacher()) {
    c.wrong({"loss.teacher_attention", "loss.teacher"},
            "there is no teacher to learn attention from", "set loss.teacher, or leave it out");
  }
  if (own.loss.teacher_hidden <= 0) return;
  if (!own.loss.has_teacher()) {
    c.wrong({"loss.teacher_hidden", "loss.teacher"},
            "there is no teacher to learn hidden rows from", "set loss.teacher, or leave it out");
  } else if (models::causal_pool_of(own.model).pooling == "state") {
    c.wrong({"loss.teacher_hidden", "model.pooling"},
            "labels are read from states (model.pooling = \"state\"), and not from rows",
            "set loss.teacher_hidden = 0, or use another pooling");
  }
}

void check_columns(RuleCheck& c) {
  const auto& data = classification_of(c.e).data;
  const bool first = data.format == "label_first";
  if (data.text.empty() && !first) {
    c.wrong({"data.text"}, "no column has the text", "name the column, or give its number from 1");
  }
  if (data.label.empty() && !first) {
    c.wrong({"data.label"}, "no column has the label",
            "name the column, or give its number from 1");
  }
  if (!data.text2.empty() && first) {
    c.wrong({"data.text2", "data.format"}, "lines of \"label_first\" have one text",
            "leave it out, or use another format");
  }
}

void check_fields(RuleCheck& c) {
  const auto& data = classification_of(c.e).data;
  check_separator(c, data.separator);
  if (data.separator.empty()) return;
  if (data.format == "jsonl" || data.format == "label_first") {
    c.wrong({"data.separator", "data.format"}, "lines of \"" + data.format + "\" have no fields",
            "leave it out, or use another format");
  }
}

int64_t count_rows(const std::vector<std::string>& files, const data::LabelledOptions& data) {
  const auto columns = data::columns_of(data);
  int64_t rows = 0;
  for (const auto& path : files) {
    data::LabelledReader reader(path, columns);
    for (data::LabelledRow row; reader.next(row);) {
      if (++rows == kCountedSamples) return rows;
    }
  }
  return rows;
}

// Where they are not listed, a part of the training data may lack some.
int64_t num_labels(const data::LabelledOptions& data) {
  if (!data.labels.empty()) return std::ssize(data.labels);
  const auto bytes = plain_bytes(data.train);
  if (!bytes || *bytes > kFewBytes) return 0;
  const auto labels = data::find_labels(data);
  return labels ? labels->size() : 0;
}

class TextClassificationRules final : public EncoderRules {
 public:
  void check_model(RuleCheck& c) const override {
    EncoderRules::check_model(c);
    check_pooling(c);
    check_head_norm(c);
  }

  void check_data(RuleCheck& c) const override {
    EncoderRules::check_data(c);
    check_columns(c);
    check_teacher_hidden(c);
    check_fields(c);
    check_labels(c);
    check_class_weights(c);
    check_regression(c);
  }

  std::string teacher_run(const Experiment& experiment) const override {
    return classification_of(experiment).loss.teacher;
  }
  Experiment without_teacher(Experiment experiment) const override {
    experiment.task.as<TextClassificationOptions>().loss.clear_teacher();
    return experiment;
  }

  Preflight look_at_texts(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return text_classification_preflight(experiment, known, how);
  }

  SeenTokens count_tokens(const Experiment& experiment, const std::string& /*key*/,
                          const std::vector<std::string>& files, const text::Tokenizer& tokenizer,
                          const PreflightTimer& time) const override {
    return count_labelled_tokens(experiment, files, tokenizer, time);
  }

  void prepare_data(const Experiment& experiment) const override {
    const auto& data = classification_of(experiment).data;
    if (!is_prepared(experiment, data.train) || !is_prepared(experiment, data.valid)) return;
    const auto texts = data::open_training_texts(data);
    if (texts->key() == 0) return;  // nothing can be kept
    const auto labels = data::labels_of(data, &texts->facts());
    const auto lines = data::lines_of([&texts] { return texts; });
    const auto tokenizer = prepared_tokenizer(experiment, *lines);
    for (const auto* files : {&data.train, &data.valid}) {
      if (files->empty()) continue;
      data::open_labelled_samples(*files, data, *tokenizer, labels ? &*labels : nullptr);
    }
  }

  bool reads_pairs(const Experiment& experiment) const override {
    return !classification_of(experiment).data.text2.empty();
  }

  bool reads_pooled_rows() const override { return true; }
  bool takes_causal_stacks() const override { return true; }

  bool has_batch_norm(const Experiment& experiment) const override {
    return models::causal_pool_of(classification_of(experiment).model).has_batch_norm();
  }

  MicroBatchSamples samples_of_micro_batch(const Experiment& experiment) const override {
    if (!has_batch_norm(experiment)) return {};
    const auto& data = classification_of(experiment).data;
    return {.key = "data.max_samples",
            .most = data.max_samples,
            .unit = "text",
            .usual_size = static_cast<double>(std::min(kUsualTextTokens, data.max_text_tokens))};
  }

  EncoderSections encoder_sections(const Experiment& experiment) const override {
    return encoder_sections_of(classification_of(experiment));
  }

  std::unique_ptr<text::LineSource> training_text(const Experiment& experiment) const override {
    return data::open_labelled_lines(classification_of(experiment).data);
  }

  std::vector<ScoreSpec> scores(const Experiment& experiment) const override {
    return tasks::text_classification_scores(classification_of(experiment));
  }

  FileSizes file_sizes(const Experiment& experiment) const override {
    FileSizes sizes = TextRules::file_sizes(experiment);
    const auto& own = classification_of(experiment);
    sizes.validation = known_count([&] { return count_rows(own.data.valid, own.data); });
    if (own.loss.label_smoothing > 0) {
      sizes.classes = known_count([&] { return num_labels(own.data); });
    }
    return sizes;
  }

  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .unit = "text", .key = "data.valid"};
  }

  LabelSmoothing label_smoothing(const Experiment& experiment,
                                 const FileSizes& files) const override {
    return {.key = "loss.label_smoothing",
            .share = classification_of(experiment).loss.label_smoothing,
            .classes = files.classes,
            .one = "label",
            .many = "labels"};
  }
};

}  // namespace

const TaskRules& text_classification_rules() {
  static const TextClassificationRules rules;
  return rules;
}

}  // namespace stretto::experiment
