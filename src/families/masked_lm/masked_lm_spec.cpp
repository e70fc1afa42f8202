#include "families/masked_lm/masked_lm_spec.h"

#include "config/open_part.h"
#include "families/masked_lm/masked_lm_display.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/masked_lm/masked_lm_rules.h"

namespace stretto::experiment {

FamilySpec masked_lm_spec() {
  return {.options = config::open_alternative<MaskedLmOptions>(),
          .also_called = {"mlm", "fill_mask", "masked_language_modeling"},
          .rules = &masked_lm_rules,
          .display = [](const Experiment& /*experiment*/) { return tasks::masked_lm_display(); },
          .eval_options = {{"--data"}},
          .infer_options = {{"--nbest"}}};
}

}  // namespace stretto::experiment
