#include "data/prefetcher.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace stretto::data {

/// A ring of `depth` places. Threads take the numbers of batches one after the other, never more
/// than `depth` ahead of the reader, and put each into the place of its number.
struct Prefetcher::Impl {
  struct Place {
    std::optional<Batch> batch;
    std::exception_ptr failure;
    bool ready = false;
  };

  Impl(const BatchSource& source, Position start, int64_t depth, const RankBatches& share)
      : source_(source),
        num_batches_(source.num_batches()),
        start_(start),
        share_(share),
        ring_(static_cast<size_t>(std::max<int64_t>(depth, 1))) {
    if (num_batches_ < 1 || start.epoch < 0 || start.index < 0 || start.index > num_batches_) {
      throw std::invalid_argument("prefetcher: no such position in this source");
    }
    if (start.index % share.update_freq != 0 && start.index != num_batches_) {
      throw std::invalid_argument("prefetcher: this position does not begin an update");
    }
    if (start.index == num_batches_) start_ = {.epoch = start.epoch + 1, .index = 0};
  }

  bool idle() const { return share_.of_epoch(num_batches_) == 0; }

  Position position_of(uint64_t number) const {
    return share_.at(start_, static_cast<int64_t>(number), num_batches_);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return stop_ || claimed_ < consumed_ + ring_.size(); });
      if (stop_) return;
      const uint64_t number = claimed_++;
      Place& place = ring_[number % ring_.size()];
      lock.unlock();
      std::optional<Batch> batch;
      std::exception_ptr failure;
      try {
        const Position at = position_of(number);
        batch = source_.load(at.epoch, at.index);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      place.batch = std::move(batch);
      place.failure = failure;
      place.ready = true;
      ready_.notify_one();
    }
  }

  Batch next() {
    if (idle()) throw std::logic_error("prefetcher: no micro-batch falls to this process");
    std::unique_lock lock(mutex_);
    Place& place = ring_[consumed_ % ring_.size()];
    ready_.wait(lock, [&] { return place.ready; });
    Place taken = std::exchange(place, {});
    ++consumed_;
    lock.unlock();
    room_.notify_one();
    if (taken.failure) std::rethrow_exception(taken.failure);
    return std::move(*taken.batch);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    threads_.clear();  // joins
  }

  const BatchSource& source_;
  const int64_t num_batches_;
  Position start_;
  const RankBatches share_;
  mutable std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<Place> ring_;
  uint64_t claimed_ = 0, consumed_ = 0;
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

Prefetcher::Prefetcher(const BatchSource& source, Position start, Loading loading,
                       RankBatches share)
    : impl_(std::make_unique<Impl>(source, start, loading.depth, share)) {
  if (impl_->idle()) return;
  const auto threads =
      std::clamp<int64_t>(loading.threads, 1, static_cast<int64_t>(impl_->ring_.size()));
  try {
    for (int64_t i = 0; i < threads; ++i) {
      impl_->threads_.emplace_back([impl = impl_.get()] { impl->run(); });
    }
  } catch (...) {  // no more threads: those that run must not wait for ever
    impl_->stop();
    throw;
  }
}

Prefetcher::~Prefetcher() {
  impl_->stop();
}

Batch Prefetcher::next() {
  return impl_->next();
}

Prefetcher::Position Prefetcher::position() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->position_of(impl_->consumed_);
}

}  // namespace stretto::data
