#pragma once

#include "experiment/experiment.h"
#include "experiment/heads.h"
#include "tasks/masked_lm/masked_lm_display.h"
#include "tasks/question_answering/question_answering_display.h"
#include "tasks/text_classification/text_classification_display.h"
#include "tasks/translation/translation_display.h"

namespace stretto::tasks {

/// The display of each family of experiment::TaskChoice, whatever `best` means to the experiment. A
/// family without a function here does not compile.
struct FamilyDisplay {
  const experiment::Experiment& of;

  report::Display operator()(const experiment::TranslationOptions& task) const {
    return translation_display(task.loss, experiment::head_names(of));
  }
  report::Display operator()(const experiment::MaskedLmOptions& /*task*/) const {
    return masked_lm_display();
  }
  report::Display operator()(const experiment::QuestionAnsweringOptions& /*task*/) const {
    return question_answering_display();
  }
  report::Display operator()(const experiment::TextClassificationOptions& task) const {
    return text_classification_display(task);
  }
};

/// How the numbers of an experiment's task are told and drawn. No libtorch.
inline report::Display display_of(const experiment::Experiment& experiment) {
  report::Display display = experiment.task.visit(FamilyDisplay{experiment});
  display.best_by = experiment.eval.best_metric;
  return display;
}

}  // namespace stretto::tasks
