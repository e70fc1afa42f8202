#include "experiment/experiment_schema.h"

namespace stretto::experiment {

static_assert(config::lists_every_member<Experiment>);

config::Schema experiment_schema(Experiment& options) {
  return config::schema_of(options);
}

config::Schema defaults_beside(const config::Schema& present, Experiment& fallback) {
  config::Schema defaults = experiment_schema(fallback);
  // A part may have parts itself, so that one choice brings the next.
  for (size_t i = 0; i < present.switches.size(); ++i) {
    const auto& wanted = present.switches[i];
    const auto* section = defaults.find_switch(wanted.section);
    if (section == nullptr || defaults.chosen(*section) == present.chosen(wanted)) continue;
    section->select(present.chosen(wanted));
    defaults = experiment_schema(fallback);
    i = static_cast<size_t>(-1);  // from the beginning
  }
  return defaults;
}

}  // namespace stretto::experiment
