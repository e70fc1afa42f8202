#include "experiment/num_threads.h"

#include "base/system_info.h"

namespace stretto::experiment {

int64_t num_threads(const Experiment& experiment) {
  return experiment.run.threads > 0 ? experiment.run.threads : usable_cores();
}

}  // namespace stretto::experiment
