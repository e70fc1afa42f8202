#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "search/hosts.h"

namespace stretto::search {

/// What one trial takes of a host.
struct TrialSize {
  int64_t slots = 1;
  int64_t gpus = 0;
};

/// Which hosts have room for a trial. A host on which trials could not run is left alone for a
/// while, longer each time, and for good after kMostFailures in a row.
class Places {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMostFailures = 4;

  struct Place {
    size_t host = 0;
    std::vector<std::string> gpus;  ///< that the trial has alone
  };

  /// @param pause  after the first failure of a host; four times as long after each further one
  Places(std::vector<Host> hosts, TrialSize size, Clock::duration pause);

  const Host& host(const Place& place) const { return hosts_[place.host].host; }
  const std::vector<Host>& hosts() const { return all_; }
  /// Trials at a time, when no host fails.
  size_t capacity() const;
  /// Room on the first host that has some; absent = there is none at present.
  std::optional<Place> take(Clock::time_point now);
  /// The trial has ended, and the host did its part.
  void give_back(const Place& place);
  /// The trial has ended since the host failed.
  /// @return whether the host is left out from now on
  bool give_back_failed(const Place& place, Clock::time_point now);
  /// Whether any host may have room again.
  bool any_left() const;

 private:
  struct State {
    Host host;
    int64_t free_slots = 0;
    std::vector<std::string> free_gpus;
    int failures = 0;  // in a row
    Clock::time_point usable_from{};
  };

  void release(const Place& place);
  size_t room(const Host& host) const;

  std::vector<Host> all_;
  std::vector<State> hosts_;
  TrialSize size_;
  Clock::duration pause_;
};

}  // namespace stretto::search
