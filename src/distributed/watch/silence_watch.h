#pragma once

#include <optional>
#include <vector>

#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// Who has not been heard of for too long, and for how long, from the times at which each was
/// heard. It reads no clock of its own.
///
/// A listener hears nothing while it does not run itself (a suspended job, a frozen container):
/// between two passes that are further apart than a quarter of the timeout no rank is silent, and
/// all times begin anew.
class SilenceWatch {
 public:
  /// Two looks are this far apart, and so are two beats: a tenth of the timeout, at most 2 s.
  static Clock::duration interval_of(Clock::duration timeout);

  SilenceWatch(int size, Clock::duration timeout, Clock::time_point now);

  void hear(int rank, Clock::time_point now);
  /// It has left, is lost, or is the listener: it is not judged any more.
  void forget(int rank);
  bool forgotten(int rank) const { return ranks_[static_cast<size_t>(rank)].forgotten; }
  /// To be called before judging.
  /// @return the time in which no rank could be heard, if that is to be forgiven
  std::optional<Clock::duration> pass(Clock::time_point now);

  struct Silence {
    int rank = 0;
    Clock::duration time{};
  };
  /// The ranks that were not heard of for the timeout or longer.
  std::vector<Silence> judge(Clock::time_point now) const;

 private:
  struct Rank {
    Clock::time_point heard{};
    bool forgotten = false;
  };
  std::vector<Rank> ranks_;
  Clock::duration timeout_;
  Clock::time_point last_pass_;
};

}  // namespace stretto::distributed
