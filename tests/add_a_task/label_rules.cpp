#include "tests/add_a_task/label_rules.h"

#include <algorithm>

#include "base/text.h"
#include "tests/add_a_task/label_display.h"
#include "tests/add_a_task/labelling_options.h"

namespace stretto::experiment {
namespace {

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
    return tasks::label_scores();
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

}  // namespace

const TaskRules& label_rules() {
  static const LabelRules rules;
  return rules;
}

}  // namespace stretto::experiment
