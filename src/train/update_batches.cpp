#include "train/update_batches.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "data/batch_walk.h"

namespace stretto::train {

UpdateBatches::UpdateBatches(const data::BatchSource& source, const data::RankBatches& share,
                             data::Loading loading, Preparation preparation)
    : source_(source), share_(share), loading_(loading), preparation_(std::move(preparation)) {}

UpdateBatches::~UpdateBatches() = default;

void UpdateBatches::seek(data::Position position) {
  // Data that were accepted although they became fewer may end before the position of the run.
  if (position.index > source_.num_batches()) position = {.epoch = position.epoch + 1, .index = 0};
  position_ = position;
  prefetcher_.reset();  // first: it is of no use any more
  const data::BatchWalk walk(source_, position, share_);
  prefetcher_ = std::make_unique<data::Prefetcher<Prepared>>(
      loading_, [this, walk](int64_t number) { return preparation_.ahead(walk.load(number)); },
      walk.empty() ? 0 : data::Prefetcher<Prepared>::kEndless);
}

int64_t UpdateBatches::load() {
  first_ = position_;
  count_ = std::min(share_.update_freq, source_.num_batches() - position_.index);
  batches_.clear();
  slices_.clear();
  for (int64_t turn = 0; turn < share_.of_update(count_); ++turn) {
    Prepared batch = prefetcher_->next();
    if (batch.batch().num_sequences() == 0) continue;
    batches_.push_back(std::move(batch));
    slices_.push_back(share_.slice(turn, count_));
  }
  return count_;
}

void UpdateBatches::split(int64_t part) {
  const auto at = static_cast<size_t>(part);
  const data::Batch& whole = batches_[at];
  const int64_t half = whole.num_sequences() / 2, end = whole.num_sequences();
  Prepared first = preparation_.make(data::part(whole, 0, half));
  Prepared second = preparation_.make(data::part(whole, half, end));
  batches_[at] = std::move(first);
  batches_.insert(batches_.begin() + part + 1, std::move(second));
  const data::MicroBatchSlice slice = slices_[at];
  slices_.insert(slices_.begin() + part + 1, slice);
}

const Prepared& UpdateBatches::on_device(int64_t part) {
  Prepared& batch = batches_[static_cast<size_t>(part)];
  batch.send(preparation_.device);
  return batch;
}

void UpdateBatches::advance() {
  position_ = {.epoch = first_.epoch, .index = first_.index + count_};
  if (position_.index == source_.num_batches()) position_ = {.epoch = first_.epoch + 1, .index = 0};
}

std::vector<data::Position> UpdateBatches::positions() const {
  std::vector<data::Position> places;
  for (const auto& slice : slices_) places.push_back({first_.epoch, first_.index + slice.micro});
  return places;
}

std::vector<const data::Batch*> UpdateBatches::whole_batches() const {
  std::vector<const data::Batch*> here(static_cast<size_t>(count_));
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].is_whole()) here[static_cast<size_t>(slices_[i].micro)] = &batches_[i].batch();
  }
  return here;
}

std::vector<std::vector<int32_t>> UpdateBatches::lanes() const {
  std::vector<std::vector<int32_t>> lanes;
  for (const data::Batch* batch : whole_batches()) {
    const int64_t index = first_.index + std::ssize(lanes);
    lanes.push_back(batch != nullptr ? batch->lanes : source_.lanes(first_.epoch, index));
  }
  return lanes;
}

uint64_t UpdateBatches::hash() const {
  const auto here = whole_batches();
  Xxh3Stream hash;
  const auto add = [&](const std::vector<int64_t>& ids) {
    hash.update(ids.data(), ids.size() * sizeof(int64_t));
  };
  for (int64_t micro = 0; micro < count_; ++micro) {
    const data::Batch* batch = here[static_cast<size_t>(micro)];
    if (batch != nullptr) {
      add(batch->sample_ids);
    } else {
      add(source_.sample_ids(first_.epoch, first_.index + micro));
    }
  }
  return hash.digest();
}

}  // namespace stretto::train
