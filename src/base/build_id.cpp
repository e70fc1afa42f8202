#include "base/build_id.h"

#include "stretto_build_id.h"

namespace stretto {

uint64_t build_id() {
  return kBuildId;
}

}  // namespace stretto
