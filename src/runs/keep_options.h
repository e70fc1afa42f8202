#pragma once

#include <cstdint>

namespace stretto::runs {

/// Which checkpoints of a run stay: what `[train]` says of it.
struct KeepOptions {
  int64_t keep_last = 2;
  int64_t keep_best = 1;
  int64_t keep_every = 0;
  int64_t average_last = 0;
  bool keep_good = false;  ///< the newest that a finite update followed: a rollback goes there
};

}  // namespace stretto::runs
