#include "experiment/masked_lm_rules.h"

#include <cmath>

#include "config/schema.h"
#include "experiment/text_rules.h"

namespace stretto::experiment {
namespace {

const MaskedLmOptions& masked_sections(const Experiment& experiment) {
  return experiment.task.as<MaskedLmOptions>();
}

void check_shares(RuleCheck& c, const data::MaskedTextOptions& data) {
  const double sum = data.mask_replace + data.mask_random + data.mask_keep;
  if (std::abs(sum - 1) < 1e-6) return;
  c.wrong({"data.mask_replace", "data.mask_random", "data.mask_keep"},
          "the shares of chosen tokens add up to " + config::number_text(sum),
          "they must add up to 1: 0.8, 0.1 and 0.1 are those of BERT");
}

// A trained SentencePiece model has no mask token.
void check_mask_token(RuleCheck& c, const text::TextTokenizerOptions& tokenizer) {
  if (tokenizer.type != "sentencepiece") return;
  c.wrong({"tokenizer.type"}, "\"sentencepiece\" has no mask token",
          "use tokenizer.type = \"wordpiece\" or \"byte_bpe\"");
}

class MaskedLmRules final : public TextRules {
 public:
  void check_model(RuleCheck& check) const override {
    TextRules::check_model(check);
    check_mask_token(check, masked_sections(check.e).tokenizer);
  }

  void check_data(RuleCheck& check) const override {
    TextRules::check_data(check);
    check_shares(check, masked_sections(check.e).data);
  }

  std::vector<ScoreName> scores(const Experiment& /*experiment*/) const override {
    return {{.name = "nll",
             .also_called = {"loss", "ce", "cross_entropy", "ppl", "perplexity", "valid_loss",
                             "eval_loss"}},
            {.name = "accuracy", .higher_is_better = true, .also_called = {"acc"}}};
  }
};

}  // namespace

const TaskRules& masked_lm_rules() {
  static const MaskedLmRules rules;
  return rules;
}

}  // namespace stretto::experiment
