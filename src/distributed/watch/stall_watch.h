#pragma once

#include <optional>
#include <string>
#include <vector>

#include "distributed/watch/activity.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// Finds threads that hang in processes that live, from what each rank says about its collectives.
/// It reads no clock of its own.
///
/// - Ranks that are all in a collective of one channel, and not all in the same one, wait for each
///   other for ever: after `timeout` without a move of any of them this is a loss.
/// - A rank outside of a collective that another one waits in may compute, tokenise or save for
///   long. When it begins and ends no collective for `warn_after`, and is waited for as long, a
///   warning names it, once; after `stall` it is lost. A collective that it begins or ends starts
///   both times anew.
class StallWatch {
 public:
  struct Limits {
    Clock::duration timeout{};
    Clock::duration warn_after{};
    Clock::duration stall{};  ///< zero = never
  };
  struct Finding {
    int rank = 0;
    std::string how;    ///< "it waits in collective 7 (barrier), rank 0 in collective 8 (…)"
    bool lost = false;  ///< false: a warning
  };

  StallWatch(int size, Clock::duration timeout);

  /// The second rule works from now on; before it only the first does.
  void watch_stalls(Clock::duration warn_after, Clock::duration stall, Clock::time_point now);
  void hear(int rank, const Activity::States& states, Clock::time_point now);
  /// The judging process did not run for `gap`, and heard nothing: that time does not count.
  void pause(Clock::duration gap);
  /// The rank has left or is lost: it is not judged any more.
  void forget(int rank);
  std::optional<Finding> judge(Clock::time_point now);

 private:
  struct Rank {
    bool known = false, forgotten = false, warned = false;
    Activity::States states{};
    std::array<Clock::time_point, Activity::kChannels> since{};  ///< last change, by channel
    Clock::time_point moved{};                                   ///< the newest of them
  };
  std::optional<Finding> judge_mismatch(size_t channel, Clock::time_point now) const;
  std::optional<Finding> judge_stall(size_t channel, Clock::time_point now);

  std::vector<Rank> ranks_;
  Limits limits_;
  std::optional<Clock::time_point> watching_since_;
};

}  // namespace stretto::distributed
