#include "tests/add_a_task/labelling.h"

#include <algorithm>

#include "base/text.h"
#include "config/open_part.h"
#include "experiment/score_spec.h"
#include "experiment/task_rules.h"
#include "report/display.h"

namespace stretto::experiment {
namespace {

/// The numbers of labelling: keys, which way is better, and how they are printed and drawn.
std::vector<ScoreSpec> label_scores() {
  return {{.style = report::loss_style()},
          {.style = {.name = kLabelAccuracy,
                     .decimals = 3,
                     .progress = "accuracy",
                     .chart = "Accuracy",
                     .axis = report::Axis::kFromZero,
                     .tile = "Accuracy",
                     .column = "Accuracy",
                     .higher_is_better = true},
           .also_called = {"acc"}}};
}

/// What `check` asks of a configuration.
class LabelRules final : public TaskRules {
 public:
  // Every width fits, and bytes need no tokenizer.
  void check_model(RuleCheck& /*check*/) const override {}

  void check_data(RuleCheck& check) const override {
    const auto& data = labelling_of(check.e).data;
    for (const auto& file : data.valid) {
      if (std::ranges::find(data.train, file) == data.train.end()) continue;
      check.wrong({"data.valid", "data.train"}, printable(file) + " is a file for training too",
                  "validate on lines that training does not see");
    }
  }

  void check_training(RuleCheck& check) const override {
    if (!labelling_of(check.e).data.train.empty()) return;
    check.wrong({"data.train"}, "there is no text to learn from", "name files of labelled lines");
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return label_scores();
  }

  ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !labelling_of(experiment).data.valid.empty(),
            .name = "labelled lines for validation",
            .keys = {"data.valid"},
            .remedy = "set data.valid"};
  }

  BatchBound micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .value = labelling_of(experiment).data.max_samples,
            .unit = "lines"};
  }
};

const TaskRules& label_rules() {
  static const LabelRules rules;
  return rules;
}

/// How numbers are printed and drawn.
report::Display display_of_labels(const Experiment& /*experiment*/) {
  report::Display display;
  display.numbers = styles_of(label_scores());
  display.rate = {
      .key = "lines_per_second", .unit = "lines", .short_unit = "lines", .batch = "lines"};
  display.loss_unit = {.name = "lines", .count = "lines"};
  return display;
}

FamilyCommand label_eval() {
  return {.options = {command_option(&LabelEvalOptions::decimals,
                                     {.name = "--decimals",
                                      .type = "N",
                                      .help = "digits of each score behind the point; default 4",
                                      .least = 1,
                                      .most = 12})}};
}

FamilyCommand label_infer() {
  return {.options = {command_option(
              &LabelInferOptions::with_text,
              {.name = "--with-text", .help = "print each line behind its label, after a tab"})}};
}

/// A micro-batch is counted in lines, and the models have no tables of a tokenizer.
FamilyPlan label_plan() {
  return {.work = [](const Experiment& experiment) -> PlannedWork {
    const auto& data = labelling_of(experiment).data;
    return {.units = static_cast<double>(data.max_samples),
            .assumed = data.max_bytes > 0 ? "data.max_bytes ends no micro-batch earlier" : ""};
  }};
}

}  // namespace

FamilySpec labelling_spec() {
  return {.options = config::open_alternative<LabellingOptions>(),
          .also_called = {"language_identification"},
          .rules = &label_rules,
          .display = &display_of_labels,
          .eval = label_eval(),
          .infer = label_infer(),
          .plan = label_plan()};
}

}  // namespace stretto::experiment
