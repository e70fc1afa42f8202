#include "families/masked_lm/masked_lm_spec.h"

#include "config/open_part.h"
#include "families/masked_lm/masked_lm_display.h"
#include "families/masked_lm/masked_lm_folders.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/masked_lm/masked_lm_rules.h"
#include "families/masked_lm/requests.h"
#include "families/text/command_options.h"
#include "families/text/export_formats.h"
#include "families/text/text_distillation.h"
#include "families/text/text_plan.h"

namespace stretto::experiment {

FamilySpec masked_lm_spec() {
  return {
      .options = config::open_alternative<MaskedLmOptions>(),
      .also_called = {"mlm", "fill_mask", "masked_language_modeling"},
      .rules = &masked_lm_rules,
      .display = [](const Experiment& /*experiment*/) { return tasks::masked_lm_display(); },
      .eval = {.options = {command_option(&tasks::MaskedLmEvalFiles::data, data_option())}},
      .infer = {.options = {command_option(&tasks::MaskedLmInferArguments::nbest, nbest_option())},
                .batch_keys = {"eval.max_tokens"}},
      .embed = embed_command(),
      .plan = text_plan(),
      .distillation = text_distillation(),
      .folders = &interchange::masked_lm_folders,
      .formats = encoder_formats()};
}

}  // namespace stretto::experiment
