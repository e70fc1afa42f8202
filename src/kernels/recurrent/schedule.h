#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/kernels.h"

/// Which thread computes what, and when, in a pass over time: sequences sorted by length, and
/// threads that work apart on rows or together on columns.
namespace stretto::kernels {

/// Packed rows in the order in which a recurrent pass meets them. Ranks are sequences, longest
/// first and equal ones in their order, so that those alive at a step are ranks 0 .. active(step).
class Schedule {
 public:
  Schedule(const Offsets& offsets, bool reverse);
  /// One step of `lanes` rows: decoding.
  explicit Schedule(int64_t lanes);

  int64_t batch() const { return static_cast<int64_t>(ranks_.size()); }
  int64_t steps() const { return static_cast<int64_t>(active_.size()); }
  int64_t rows() const { return rows_; }
  int64_t active(int64_t step) const { return active_[static_cast<size_t>(step)]; }
  int64_t sequence(int64_t rank) const { return ranks_[static_cast<size_t>(rank)].sequence; }
  int64_t length(int64_t rank) const { return ranks_[static_cast<size_t>(rank)].length; }
  int64_t row(int64_t rank, int64_t step) const {
    const Rank& one = ranks_[static_cast<size_t>(rank)];
    return one.first + step * direction_;
  }

 private:
  struct Rank {
    int64_t sequence, length, first;  ///< first: the row of step 0
  };
  std::vector<Rank> ranks_;
  std::vector<int64_t> active_;
  int64_t rows_ = 0, direction_ = 1;
};

/// Threads of one team wait here for each other; between phases it is a matter of a microsecond, so
/// that they look often before they let others have the core.
class Barrier {
 public:
  void wait(int64_t size);

 private:
  std::atomic<int64_t> arrived_{0};
  std::atomic<int64_t> round_{0};
};

/// One of `size` threads that compute the same rows together, in phases.
class ThreadTeam {
 public:
  ThreadTeam(int64_t index, int64_t size, Barrier* barrier)
      : index_(index), size_(size), barrier_(barrier) {}

  struct Range {
    int64_t begin, end;
  };
  /// This thread's range of `count` things.
  Range range(int64_t count) const {
    return {count * index_ / size_, count * (index_ + 1) / size_};
  }
  /// Until all of the team have come here.
  void wait() const {
    if (size_ > 1) barrier_->wait(size_);
  }

 private:
  int64_t index_, size_;
  Barrier* barrier_;
};

/// Every `count`-th rank from `index` on: the rows of one team. Long and short sequences are dealt
/// out in turn, so that crews have the same number at every step.
struct Bundle {
  int64_t index, count;

  int64_t rows(int64_t active) const { return (active - index + count - 1) / count; }
  int64_t rank(int64_t i) const { return index + i * count; }
};

enum class Time { kForward, kBackward };

/// Calls `work` for every step of each bundle, in the order of time, with threads. How many bundles
/// there are follows from the rows that are alive, the threads, and `weights`, the numbers that a
/// step multiplies each row with (bundles_for); no result may depend on it.
void run_steps(const Schedule& schedule, int64_t weights, Time time,
               const std::function<void(int64_t step, const Bundle&, const ThreadTeam&)>& work);

/// One step of one bundle, again and again, by a team of all threads: the columns of its products
/// are shared, and nothing is allocated.
class StepTeam {
 public:
  /// @param products  the numbers that a step multiplies, for all rows: few are left to one thread
  void run(int64_t products, const std::function<void(const ThreadTeam&)>& work);

 private:
  Barrier barrier_;
};

/// Into how many bundles `rows` go on `threads` threads: a divisor of `threads`, or all of them.
/// `recurrent_bench --sweep` prints the times that the rule weighs.
int64_t bundles_for(int64_t rows, int64_t threads, int64_t weights);

/// 0: the rule of bundles_for again; else as many bundles as stated, or as there are threads if
/// those are fewer. For tests and measurements.
void force_bundles(int64_t bundles);

}  // namespace stretto::kernels
