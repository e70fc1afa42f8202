#pragma once

#include <cstdint>

namespace stretto::data {

/// How micro-batches are made ready while the model works. Neither number changes a batch.
struct Loading {
  int64_t depth = 8;    ///< micro-batches ahead of the model
  int64_t threads = 1;  ///< that make them: more than one pays where samples are decoded
};

}  // namespace stretto::data
