#include "data/rank_batches.h"

namespace stretto::data {

int64_t RankBatches::sharers(int64_t count) const {
  const int64_t left_over = count % size;
  return cut && left_over > 0 ? size / left_over : 1;
}

int64_t RankBatches::of_update(int64_t count) const {
  const bool has_one_more = rank / sharers(count) < count % size;
  return count / size + (has_one_more ? 1 : 0);
}

MicroBatchSlice RankBatches::slice(int64_t turn, int64_t count) const {
  const int64_t rounds = count / size;
  if (turn < rounds) return {.micro = turn * size + rank};
  const int64_t parts = sharers(count);
  return {.micro = rounds * size + rank / parts, .part = rank % parts, .parts = parts};
}

PlacedSlice RankBatches::at(Position start, int64_t number, int64_t num_batches) const {
  const int64_t each = of_update(update_freq), epoch_total = of_epoch(num_batches);
  const int64_t whole_updates = num_batches / update_freq;
  const int64_t k = number + start.index / update_freq * each;
  const int64_t inside = k % epoch_total;
  const bool in_last = inside >= whole_updates * each;  // the epoch's shorter update
  const int64_t update = in_last ? whole_updates : inside / each;
  const int64_t turn = in_last ? inside - whole_updates * each : inside % each;
  const int64_t count = in_last ? num_batches % update_freq : update_freq;
  const MicroBatchSlice own = slice(turn, count);
  return {.position = {.epoch = start.epoch + k / epoch_total,
                       .index = update * update_freq + own.micro},
          .slice = own};
}

double rounds_of_update(int64_t count, int64_t size, bool cut) {
  const RankBatches most{.update_freq = count, .rank = 0, .size = size, .cut = cut};
  const int64_t slices = most.of_update(count);
  if (slices == 0) return 0;
  const MicroBatchSlice last = most.slice(slices - 1, count);
  return static_cast<double>(slices - 1) + 1.0 / static_cast<double>(last.parts);
}

}  // namespace stretto::data
