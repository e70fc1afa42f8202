#include "experiment/question_answering_rules.h"

#include "experiment/text_rules.h"

namespace stretto::experiment {
namespace {

class QuestionAnsweringRules final : public TextRules {
 public:
  std::vector<ScoreName> scores(const Experiment& /*experiment*/) const override {
    return {{.name = "f1", .higher_is_better = true, .also_called = {"eval_f1"}},
            {.name = "exact_match", .higher_is_better = true, .also_called = {"em", "exact"}},
            {.name = "nll", .also_called = {"loss", "valid_loss", "eval_loss"}}};
  }
};

}  // namespace

const TaskRules& question_answering_rules() {
  static const QuestionAnsweringRules rules;
  return rules;
}

}  // namespace stretto::experiment
