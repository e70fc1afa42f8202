#include "experiment/masked_lm_rules.h"

#include "experiment/text_rules.h"

namespace stretto::experiment {
namespace {

class MaskedLmRules final : public TextRules {
 public:
  std::vector<ScoreName> scores(const Experiment& /*experiment*/) const override {
    return {{.name = "nll",
             .also_called = {"loss", "ce", "cross_entropy", "ppl", "perplexity", "valid_loss",
                             "eval_loss"}}};
  }
};

}  // namespace

const TaskRules& masked_lm_rules() {
  static const MaskedLmRules rules;
  return rules;
}

}  // namespace stretto::experiment
