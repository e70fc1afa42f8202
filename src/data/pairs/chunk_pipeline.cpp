#include "data/pairs/chunk_pipeline.h"

#include <algorithm>
#include <utility>

namespace stretto::data {

void Chunk::clear() {
  lines.clear();
  line_ends.clear();
  ids.clear();
  src_lens.clear();
  tgt_lens.clear();
  text.clear();
  text_lens.clear();
  counts = {};
  src_counts = tgt_counts = {};
  failure = nullptr;
}

ChunkPipeline::ChunkPipeline(int64_t threads, Step work, Step drain)
    : work_(std::move(work)), drain_(std::move(drain)) {
  threads = std::max<int64_t>(threads, 1);
  ring_ = std::vector<Slot>(static_cast<size_t>(2 * threads + 2));
  for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

ChunkPipeline::~ChunkPipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  filled_.notify_all();
}

void ChunkPipeline::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    filled_.wait(lock, [&] { return stop_ || claimed_ < submitted_; });
    if (stop_) return;
    Slot& mine = slot(claimed_++);
    lock.unlock();
    try {
      work_(mine.chunk);
    } catch (...) {
      mine.chunk.failure = std::current_exception();
    }
    lock.lock();
    mine.state = State::kDone;
    done_.notify_one();
  }
}

Chunk& ChunkPipeline::acquire() {
  if (submitted_ - drained_ == ring_.size()) drain_oldest();
  Chunk& chunk = slot(submitted_).chunk;
  chunk.clear();
  return chunk;
}

void ChunkPipeline::submit() {
  {
    const std::lock_guard lock(mutex_);
    slot(submitted_).state = State::kFull;
    ++submitted_;
  }
  filled_.notify_one();
}

void ChunkPipeline::drain_oldest() {
  Slot& oldest = slot(drained_);
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return oldest.state == State::kDone; });
    oldest.state = State::kFree;
  }
  ++drained_;
  if (oldest.chunk.failure) std::rethrow_exception(oldest.chunk.failure);
  drain_(oldest.chunk);
}

void ChunkPipeline::finish() {
  while (drained_ < submitted_) drain_oldest();
}

}  // namespace stretto::data
