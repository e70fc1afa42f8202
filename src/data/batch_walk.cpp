#include "data/batch_walk.h"

#include <stdexcept>

namespace stretto::data {

BatchWalk::BatchWalk(const BatchSource& source, Position start, RankBatches share)
    : source_(&source), num_batches_(source.num_batches()), start_(start), share_(share) {
  if (num_batches_ < 1 || start.epoch < 0 || start.index < 0 || start.index > num_batches_) {
    throw std::invalid_argument("batch walk: no such position in this source");
  }
  if (start.index % share.update_freq != 0 && start.index != num_batches_) {
    throw std::invalid_argument("batch walk: this position does not begin an update");
  }
  if (start.index == num_batches_) start_ = {.epoch = start.epoch + 1, .index = 0};
}

Batch BatchWalk::load(int64_t number) const {
  const auto [position, slice] = share_.at(start_, number, num_batches_);
  Batch whole = source_->load_for_training(position.epoch, position.index);
  return slice.is_whole() ? whole : even_part(whole, slice.part, slice.parts);
}

}  // namespace stretto::data
