#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"

namespace stretto::distributed {

using Clock = std::chrono::steady_clock;

/// The identity of one process of the group.
struct Peer {
  std::string host;
  int64_t pid = 0;
};

/// What to do about a lost process: an evaluation has no checkpoint to go on from.
inline constexpr const char* kStartAgain =
    "start again: training goes on from its last checkpoint, all else begins anew";

/// Another process of the group is lost: Error(kPeerLost) with its rank. All that are left throw
/// it.
class PeerLost : public Error {
 public:
  PeerLost(int rank, const std::string& what, std::string advice)
      : Error(ExitCode::kPeerLost, what, std::move(advice)), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

/// What is known about the other processes: the heartbeat writes it, every wait of a collective
/// looks at it. Safe from any thread.
class PeerWatch {
 public:
  /// How long a collective still goes on after the news: the peer may have done its part before.
  static constexpr std::chrono::milliseconds kGrace{500};

  /// The identities of the ranks; before it, messages name the rank alone.
  void set_peers(std::vector<Peer> peers);
  /// "rank 2 (host a, pid 4711)"
  std::string name_of(int rank) const;

  /// Rank `rank` is lost; only the first such news counts. @param how  "its process has ended"
  void lost(int rank, const std::string& how);
  /// Rank `rank` ended in order; whoever still waits for it after `patience` is told so.
  void left(int rank, Clock::duration patience);

  bool alarmed() const { return alarmed_.load(std::memory_order_acquire); }
  /// Throws PeerLost that names rank, host and pid once the news is older than kGrace. Cheap before
  /// there is any.
  void check() const;
  /// True when check() was called after the news: the process knows, or soon will.
  bool heeded() const { return heeded_.load(std::memory_order_relaxed); }
  /// For a collective that failed: waits up to 2 kGrace for the news of who it was, and throws it.
  void wait_for_news() const;
  /// The PeerLost that check() throws or will throw; only after the news.
  PeerLost news() const;

 private:
  void alarm(int rank, const std::string& how, Clock::time_point throw_from);

  std::atomic<bool> alarmed_ = false;
  mutable std::atomic<bool> heeded_ = false;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;
  int lost_rank_ = 0;
  std::string text_;
  Clock::time_point throw_from_{};
  bool certain_ = false;  ///< a loss replaces the news of an orderly end
};

/// Waits for done() without spinning: asks, sleeps 20 µs growing to 200 µs, asks again. A look that
/// itself took a while has moved data, and is followed by another at once. Throws as `watch.check`.
template <class Done>
void wait_until(const PeerWatch& watch, Done&& done);

/// The sleeps of one wait.
class Pauses {
 public:
  void begin_look() { began_ = Clock::now(); }
  /// Sleeps after a look that found nothing.
  void pause();

 private:
  static constexpr std::chrono::microseconds kFirst{20}, kLongest{200}, kWorked{15};
  Clock::time_point began_{};
  std::chrono::microseconds next_ = kFirst;
};

template <class Done>
void wait_until(const PeerWatch& watch, Done&& done) {
  Pauses pauses;
  while (true) {
    pauses.begin_look();
    if (done()) return;
    watch.check();
    pauses.pause();
  }
}

}  // namespace stretto::distributed
