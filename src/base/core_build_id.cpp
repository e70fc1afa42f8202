// Apart from build_id.cpp, which is not in the core alone.
#include "base/build_id.h"

namespace stretto {

uint64_t core_build_id() {
  return build_id();
}

}  // namespace stretto
