#pragma once

#include "experiment/experiment.h"
#include "experiment/heads.h"
#include "tasks/masked_lm/masked_lm_display.h"
#include "tasks/question_answering/question_answering_display.h"
#include "tasks/text_classification/text_classification_display.h"
#include "tasks/translation/translation_display.h"

namespace stretto::tasks {

/// Of its family, whatever `best` means to the experiment.
inline report::Display display_of_family(const experiment::Experiment& experiment) {
  const auto& task = experiment.task;
  if (task.is<experiment::MaskedLmOptions>()) return masked_lm_display();
  if (task.is<experiment::QuestionAnsweringOptions>()) return question_answering_display();
  if (task.is<experiment::TextClassificationOptions>()) {
    return text_classification_display(task.as<experiment::TextClassificationOptions>());
  }
  return translation_display(translation_of(experiment).loss, experiment::head_names(experiment));
}

/// How the numbers of an experiment's task are told and drawn. No libtorch.
inline report::Display display_of(const experiment::Experiment& experiment) {
  report::Display display = display_of_family(experiment);
  display.best_by = experiment.eval.best_metric;
  return display;
}

}  // namespace stretto::tasks
