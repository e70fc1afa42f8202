#include "experiment/experiment_schema.h"

namespace stretto::experiment {

static_assert(config::lists_every_member<Experiment>);

namespace {

// Brings one list to the length, or one section to the part, that it has in `present`.
// @return whether there was one, so that the keys are to be bound again
bool take_one(const config::Schema& present, const config::Schema& defaults) {
  for (const auto& wanted : present.lists) {
    const auto* list = defaults.find_list(wanted.path);
    if (list == nullptr || list->size == wanted.size) continue;
    list->make(wanted.size);
    return true;
  }
  for (const auto& wanted : present.switches) {
    const auto* section = defaults.find_switch(wanted.section);
    if (section == nullptr || defaults.chosen(*section) == present.chosen(wanted)) continue;
    section->select(present.chosen(wanted));
    return true;
  }
  return false;
}

}  // namespace

config::Schema experiment_schema(Experiment& options) {
  return config::schema_of(options);
}

config::Schema defaults_beside(const config::Schema& present, Experiment& fallback) {
  config::Schema defaults = experiment_schema(fallback);
  // A part or an entry may have parts and lists itself, so that one brings the next.
  while (take_one(present, defaults)) defaults = experiment_schema(fallback);
  return defaults;
}

}  // namespace stretto::experiment
