#pragma once

#include <algorithm>
#include <cstdint>

namespace stretto::train {

/// How fast this process trains: over the window since the last event of metrics.jsonl, and over
/// all of its updates.
class Pace {
 public:
  void add(double seconds, int64_t tokens) {
    window_seconds_ += seconds;
    window_tokens_ += tokens;
    seconds_ += seconds;
    updates_ += 1;
  }
  void begin_window() {
    window_seconds_ = 0;
    window_tokens_ = 0;
  }

  /// Target tokens per second of training in this window.
  double tokens_per_second() const {
    constexpr double kMicrosecond = 1e-6;
    return static_cast<double>(window_tokens_) / std::max(window_seconds_, kMicrosecond);
  }
  /// -1 before the first update.
  double seconds_per_update() const {
    return updates_ == 0 ? -1 : seconds_ / static_cast<double>(updates_);
  }

 private:
  double window_seconds_ = 0, seconds_ = 0;
  int64_t window_tokens_ = 0, updates_ = 0;
};

}  // namespace stretto::train
