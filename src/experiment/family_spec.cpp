#include "experiment/family_spec.h"

#include <algorithm>

namespace stretto::experiment {

TaskChoice::TaskChoice() : OpenChoice(&listed) {}

config::OpenChoice::Alternatives TaskChoice::listed() {
  Alternatives found;
  for (const auto& family : families()) found.push_back(family.options);
  return found;
}

std::vector<std::string> TaskChoice::names() {
  return TaskChoice().OpenChoice::names();
}

std::vector<config::OtherValue> TaskChoice::other_names() {
  std::vector<config::OtherValue> found;
  for (const auto& family : families()) {
    for (const char* name : family.also_called) found.push_back({name, family.options.name, ""});
  }
  return found;
}

const FamilySpec* find_family(const Experiment& experiment) {
  const auto found = std::ranges::find_if(families(), [&](const FamilySpec& family) {
    return experiment.task.name() == family.options.name;
  });
  return found == families().end() ? nullptr : &*found;
}

report::Display display_of(const Experiment& experiment) {
  report::Display display = find_family(experiment)->display(experiment);
  display.best_by = experiment.eval.best_metric;
  return display;
}

}  // namespace stretto::experiment
