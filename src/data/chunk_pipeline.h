#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stretto::data {

/// Works on chunks on threads, in a ring of as many as are in flight, and hands them back in the
/// order in which they came.
///
/// @tparam Chunk  is used again and again, and has clear()
template <class Chunk>
class ChunkPipeline {
 public:
  using Step = std::function<void(Chunk&)>;
  /// @param work   runs on the threads; what it throws is rethrown when its chunk's turn comes
  /// @param drain  runs on the caller's thread, in order
  ChunkPipeline(int64_t threads, Step work, Step drain)
      : work_(std::move(work)), drain_(std::move(drain)) {
    threads = std::max<int64_t>(threads, 1);
    ring_ = std::vector<Slot>(static_cast<size_t>(2 * threads + 2));
    for (int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~ChunkPipeline() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    filled_.notify_all();
  }

  /// An empty chunk to fill; drains the oldest when none is free.
  Chunk& acquire() {
    if (submitted_ - drained_ == ring_.size()) drain_oldest();
    Slot& unused = slot(submitted_);
    unused.chunk.clear();
    unused.failure = nullptr;
    return unused.chunk;
  }

  /// The acquired chunk is full.
  void submit() {
    {
      const std::lock_guard lock(mutex_);
      slot(submitted_).state = State::kFull;
      ++submitted_;
    }
    filled_.notify_one();
  }

  /// Drains all.
  void finish() {
    while (drained_ < submitted_) drain_oldest();
  }

 private:
  enum class State { kFree, kFull, kDone };
  struct Slot {
    Chunk chunk;
    std::exception_ptr failure;
    State state = State::kFree;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      filled_.wait(lock, [&] { return stop_ || claimed_ < submitted_; });
      if (stop_) return;
      Slot& mine = slot(claimed_++);
      lock.unlock();
      try {
        work_(mine.chunk);
      } catch (...) {
        mine.failure = std::current_exception();
      }
      lock.lock();
      mine.state = State::kDone;
      done_.notify_one();
    }
  }

  void drain_oldest() {
    Slot& oldest = slot(drained_);
    {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [&] { return oldest.state == State::kDone; });
      oldest.state = State::kFree;
    }
    ++drained_;
    if (oldest.failure) std::rethrow_exception(oldest.failure);
    drain_(oldest.chunk);
  }

  Slot& slot(uint64_t number) { return ring_[number % ring_.size()]; }

  Step work_, drain_;
  std::vector<Slot> ring_;
  std::mutex mutex_;
  std::condition_variable filled_, done_;
  uint64_t submitted_ = 0, claimed_ = 0, drained_ = 0;
  bool stop_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace stretto::data
