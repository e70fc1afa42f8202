#include "experiment/build_id.h"

#include "stretto_build_id.h"

namespace stretto::experiment {

uint64_t engine_build_id() {
  return kBuildId;
}

}  // namespace stretto::experiment
