#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/pairs/corpus.h"

namespace stretto::data {

/// Consecutive pairs of lines of one input, and what became of them.
struct Chunk {
  size_t input = 0;
  int64_t first_line = 1;
  std::string lines;                ///< source, target, source, … without line ends
  std::vector<uint32_t> line_ends;  ///< [2 · pairs] in `lines`

  std::string ids;                  ///< raw token ids of the kept pairs
  std::vector<uint32_t> src_lens;   ///< [kept]
  std::vector<uint32_t> tgt_lens;   ///< [kept]
  std::string text;                 ///< lines of the kept pairs
  std::vector<uint32_t> text_lens;  ///< [2 · kept]
  FilterCounts counts;
  TextCounts src_counts, tgt_counts;  ///< of the kept pairs
  std::exception_ptr failure;

  void clear();
};

/// Works on chunks on threads, in a ring of as many as are in flight, and hands them back in the
/// order in which they came.
class ChunkPipeline {
 public:
  using Step = std::function<void(Chunk&)>;
  /// @param work   runs on the threads; what it throws is rethrown when its chunk's turn comes
  /// @param drain  runs on the caller's thread, in order
  ChunkPipeline(int64_t threads, Step work, Step drain);
  ~ChunkPipeline();

  Chunk& acquire();  ///< an empty chunk to fill; drains the oldest when none is free
  void submit();     ///< the acquired chunk is full
  void finish();     ///< drains all

 private:
  enum class State { kFree, kFull, kDone };
  struct Slot {
    Chunk chunk;
    State state = State::kFree;
  };
  void run();
  void drain_oldest();
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
