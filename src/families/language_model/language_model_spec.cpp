#include "families/language_model/language_model_spec.h"

#include <utility>

#include "config/open_part.h"
#include "families/language_model/folders/language_model_folders.h"
#include "families/language_model/generation_command.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/language_model_formats.h"
#include "families/language_model/language_model_options.h"
#include "families/language_model/language_model_plan.h"
#include "families/language_model/language_model_rules.h"
#include "families/language_model/requests.h"
#include "families/text/command_options.h"

namespace stretto::experiment {
namespace {

FamilyCommand language_model_eval() {
  using Files = tasks::LanguageModelEvalFiles;
  return {.options = {
              command_option(&Files::data, data_option()),
              command_option(&Files::per_line, per_line_option()),
          }};
}

}  // namespace

FamilySpec language_model_spec() {
  return {
      .options = config::open_alternative<LanguageModelOptions>(),
      .also_called = {"lm", "causal_lm", "clm", "language_modeling", "text_generation",
                      "causal_language_modeling"},
      .rules = &language_model_rules,
      .display = [](const Experiment& /*experiment*/) { return tasks::language_model_display(); },
      .eval = language_model_eval(),
      .infer = generation_command(),
      .plan = language_model_plan(),
      .folders = &interchange::language_model_folders,
      .formats = language_model_formats()};
}

}  // namespace stretto::experiment
