#include "experiment/experiment_schema.h"

namespace stretto::experiment {

static_assert(config::lists_every_member<Experiment>);

config::Schema experiment_schema(Experiment& options) {
  return config::schema_of(options);
}

const config::Schema& default_schema() {
  static Experiment options;
  static const config::Schema schema = experiment_schema(options);
  return schema;
}

}  // namespace stretto::experiment
