#include "families/translation/translation_spec.h"

#include "config/open_part.h"
#include "families/text/export_formats.h"
#include "families/translation/folders/translation_folders.h"
#include "families/translation/translation_commands.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_distillation.h"
#include "families/translation/translation_options.h"
#include "families/translation/translation_plan.h"
#include "families/translation/translation_rules.h"

namespace stretto::experiment {

FamilySpec translation_spec() {
  return {.options = config::open_alternative<TranslationOptions>(),
          .also_called = {"mt", "seq2seq", "translation_from_pretrained_bart", "text2text"},
          .rules = &translation_rules,
          .display =
              [](const Experiment& e) {
                return tasks::translation_display(translation_of(e).loss, tasks::scored_heads(e));
              },
          .eval = translation_eval(),
          .infer = translation_infer(),
          .plan = translation_plan(),
          .distillation = translation_distillation(),
          .folders = &interchange::translation_folders,
          .formats = {transformers_format(), ctranslate2_format("Transformers of two stacks")}};
}

}  // namespace stretto::experiment
