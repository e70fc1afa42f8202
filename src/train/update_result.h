#pragma once

#include <cstdint>

#include "train/task.h"

namespace stretto::train {

/// What one update did; the same on every rank but for the seconds.
struct UpdateResult {
  int64_t epoch = 0;  ///< of its micro-batches, from 1
  Totals totals;
  double grad_norm = 0;  ///< of Totals::loss(), with its noise, before clipping; not scaled
  double max_abs = 0;    ///< largest |gradient| in the arena, without its noise, if the loss scaler
                         ///< wants it
  double loss_scale = 1;
  double seconds = 0;
  double data_wait_seconds = 0;  ///< of `seconds`: until the micro-batches were ready
  int64_t micro_batches = 0;     ///< of all ranks
  uint64_t batch_hash = 0;
  bool finite = true;  ///< false: loss or gradient was not, nothing may be stepped
  int stop = 0;        ///< the largest of all ranks' reasons to stop
  int64_t split = 0;   ///< how often micro-batches were split for lack of memory
};

}  // namespace stretto::train
