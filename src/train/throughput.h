#pragma once

#include <algorithm>
#include <cstdint>

namespace stretto::train {

/// How fast this process trains: over the window since the last event of metrics.jsonl, and over
/// all of its updates.
class Throughput {
 public:
  /// @param count  of what the task's first counter counts
  void add(double seconds, int64_t count) {
    window_seconds_ += seconds;
    window_count_ += count;
    seconds_ += seconds;
    updates_ += 1;
  }
  void begin_window() {
    window_seconds_ = 0;
    window_count_ = 0;
  }

  /// Counted per second of training in this window.
  double per_second() const {
    constexpr double kMicrosecond = 1e-6;
    return static_cast<double>(window_count_) / std::max(window_seconds_, kMicrosecond);
  }
  /// -1 before the first update.
  double seconds_per_update() const {
    return updates_ == 0 ? -1 : seconds_ / static_cast<double>(updates_);
  }

 private:
  double window_seconds_ = 0, seconds_ = 0;
  int64_t window_count_ = 0, updates_ = 0;
};

}  // namespace stretto::train
