#include "families/text_classification/text_classification_spec.h"

#include "config/open_part.h"
#include "families/text/command_options.h"
#include "families/text/export_formats.h"
#include "families/text/text_distillation.h"
#include "families/text/text_plan.h"
#include "families/text_classification/requests.h"
#include "families/text_classification/text_classification_display.h"
#include "families/text_classification/text_classification_folders.h"
#include "families/text_classification/text_classification_options.h"
#include "families/text_classification/text_classification_rules.h"

namespace stretto::experiment {

FamilySpec text_classification_spec() {
  return {
      .options = config::open_alternative<TextClassificationOptions>(),
      .also_called = {"classification", "sentence_prediction", "sequence_classification",
                      "text_pair_classification", "regression", "glue"},
      .rules = &text_classification_rules,
      .display =
          [](const Experiment& e) {
            return tasks::text_classification_display(e.task.as<TextClassificationOptions>());
          },
      .eval = {.options = {command_option(&tasks::TextClassificationEvalFiles::data, data_option()),
                           command_option(&tasks::TextClassificationEvalFiles::predictions,
                                          predictions_option())}},
      .infer = {.options = {command_option(&tasks::TextClassificationInferArguments::scores,
                                           scores_option())},
                .batch_keys = {"eval.max_tokens", "eval.max_samples"}},
      .embed = embed_command(),
      .plan = text_plan(),
      .distillation = text_distillation(),
      .folders = &interchange::text_classification_folders,
      .formats = encoder_formats()};
}

}  // namespace stretto::experiment
