#include "data/share.h"

namespace stretto::data {

Position Share::at(Position start, int64_t number, int64_t num_batches) const {
  const int64_t each = of_update(update_freq), epoch_total = of_epoch(num_batches);
  const int64_t whole_updates = num_batches / update_freq;
  const int64_t k = number + start.index / update_freq * each;
  const int64_t inside = k % epoch_total;
  const bool in_last = inside >= whole_updates * each;  // the epoch's shorter update
  const int64_t update = in_last ? whole_updates : inside / each;
  const int64_t turn = in_last ? inside - whole_updates * each : inside % each;
  return {.epoch = start.epoch + k / epoch_total,
          .index = update * update_freq + rank + turn * size};
}

}  // namespace stretto::data
