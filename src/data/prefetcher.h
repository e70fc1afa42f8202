#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "data/loading.h"

namespace stretto::data {

/// Makes items 0, 1, 2 … on threads, some ahead of the one reader, who gets them in this order:
/// batches as they are loaded, or what a room with tensors makes of them. Which thread makes an
/// item, and when, does not show in it.
template <class Item>
class Prefetcher {
 public:
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

  /// @param make   makes the item of a number; called by several threads at once
  /// @param count  of items; with 0 no thread is started
  Prefetcher(Loading loading, std::function<Item(int64_t number)> make, int64_t count = kEndless)
      : make_(std::move(make)),
        count_(count),
        ring_(static_cast<size_t>(std::max<int64_t>(std::min(loading.depth, count), 1))) {
    if (count == 0) return;
    const auto threads = std::clamp<int64_t>(loading.threads, 1, std::ssize(ring_));
    try {
      for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    } catch (...) {  // no more threads: those that run must not wait for ever
      stop();
      throw;
    }
  }
  /// Items that are being made are still finished, and dropped.
  ~Prefetcher() { stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Waits for the next item. Rethrows what making it threw; the item behind it comes next.
  /// Throws std::logic_error behind the last item.
  Item next() {
    std::unique_lock lock(mutex_);
    if (taken_ == count_) throw std::logic_error("prefetcher: there are no more items");
    Place& place = place_of(taken_);
    ready_.wait(lock, [&] { return place.ready; });
    Place taken = std::exchange(place, {});
    ++taken_;
    lock.unlock();
    room_.notify_one();
    if (taken.failure) std::rethrow_exception(taken.failure);
    return std::move(*taken.item);
  }

 private:
  struct Place {
    std::optional<Item> item;
    std::exception_ptr failure;
    bool ready = false;
  };

  Place& place_of(int64_t number) { return ring_[static_cast<size_t>(number % std::ssize(ring_))]; }

  // Threads take numbers one after the other, never more than the ring's size ahead of the reader,
  // and put each item into the place of its number.
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] {
        return stop_ || (claimed_ < count_ && claimed_ < taken_ + std::ssize(ring_));
      });
      if (stop_) return;
      const int64_t number = claimed_++;
      lock.unlock();
      Place made = make(number);
      lock.lock();
      place_of(number) = std::move(made);
      ready_.notify_one();
    }
  }

  Place make(int64_t number) const {
    Place made;
    try {
      made.item.emplace(make_(number));
    } catch (...) {
      made.failure = std::current_exception();
    }
    made.ready = true;
    return made;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_all();
    threads_.clear();  // joins
  }

  const std::function<Item(int64_t number)> make_;
  const int64_t count_;
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<Place> ring_;  ///< place i is of the items i, i + size, i + 2 size …
  int64_t claimed_ = 0, taken_ = 0;
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace stretto::data
