#include "tests/add_a_task/label_rules.h"

namespace stretto::tasks {
namespace {

using experiment::Experiment;

constexpr int64_t kLines = 32;  // of a micro-batch, where data.max_samples sets no bound

class LabelRules final : public experiment::TaskRules {
 public:
  // Every width fits, and bytes need no tokenizer.
  void check_model(experiment::RuleCheck& /*check*/) const override {}

  void check_data(experiment::RuleCheck& check) const override {
    const auto& data = translation_of(check.e).data;
    if (data.train_src.empty()) {
      check.wrong({"data.train_src"}, "there is no text to learn from", "name files of text");
    }
    if (data.train_tgt.size() != data.train_src.size()) {
      check.wrong({"data.train_tgt", "data.train_src"}, "each file of text needs one of labels",
                  "name them in the order of data.train_src");
    }
  }

  std::vector<experiment::ScoreName> scores(const Experiment& /*experiment*/) const override {
    return {{.name = "accuracy", .higher_is_better = true, .also_called = {"acc"}},
            {.name = "loss"}};
  }

  experiment::ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !translation_of(experiment).data.valid_src.empty(),
            .name = "labelled lines for validation",
            .keys = {"data.valid_src"},
            .remedy = "set data.valid_src and data.valid_tgt"};
  }

  experiment::BatchBound micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples", .value = lines_of_batch(experiment), .unit = "lines"};
  }
};

}  // namespace

const experiment::TaskRules& label_rules() {
  static const LabelRules rules;
  return rules;
}

int64_t lines_of_batch(const Experiment& experiment) {
  return translation_of(experiment).data.max_samples > 0
             ? translation_of(experiment).data.max_samples
             : kLines;
}

}  // namespace stretto::tasks
