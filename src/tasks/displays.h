#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "tasks/translation/translation_display.h"

namespace stretto::tasks {

/// How the numbers of an experiment's task are told and drawn. No libtorch.
inline report::Display display_of(const experiment::Experiment& experiment) {
  std::vector<std::string> heads;
  for (const auto& head : experiment.model.heads) heads.push_back(head.name);
  return translation_display(experiment.loss, heads);
}

}  // namespace stretto::tasks
