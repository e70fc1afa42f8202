#include "distributed/watch/silence_watch.h"

#include <algorithm>

namespace stretto::distributed {

Clock::duration SilenceWatch::interval_of(Clock::duration timeout) {
  return std::min<Clock::duration>(timeout / 10, std::chrono::seconds(2));
}

SilenceWatch::SilenceWatch(int size, Clock::duration timeout, Clock::time_point now)
    : ranks_(static_cast<size_t>(size), Rank{.heard = now}), timeout_(timeout), last_pass_(now) {}

void SilenceWatch::hear(int rank, Clock::time_point now) {
  ranks_[static_cast<size_t>(rank)].heard = now;
}

void SilenceWatch::forget(int rank) {
  ranks_[static_cast<size_t>(rank)].forgotten = true;
}

// A pass takes an interval, a tenth of the timeout or less.
std::optional<Clock::duration> SilenceWatch::pass(Clock::time_point now) {
  const Clock::duration gap = now - last_pass_;
  last_pass_ = now;
  if (gap <= timeout_ / 4) return {};
  for (Rank& one : ranks_) one.heard = now;
  return gap;
}

std::vector<SilenceWatch::Silence> SilenceWatch::judge(Clock::time_point now) const {
  std::vector<Silence> silent;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& one = ranks_[rank];
    if (one.forgotten || now - one.heard < timeout_) continue;
    silent.push_back({static_cast<int>(rank), now - one.heard});
  }
  return silent;
}

}  // namespace stretto::distributed
