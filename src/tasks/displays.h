#pragma once

#include "experiment/experiment.h"
#include "experiment/heads.h"
#include "tasks/translation/translation_display.h"

namespace stretto::tasks {

/// How the numbers of an experiment's task are told and drawn. No libtorch.
inline report::Display display_of(const experiment::Experiment& experiment) {
  return translation_display(translation_of(experiment).loss, experiment::head_names(experiment));
}

}  // namespace stretto::tasks
