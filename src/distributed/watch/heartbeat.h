#pragma once

#include <memory>
#include <string>

#include "distributed/process_group.h"
#include "distributed/watch/activity.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// Notices processes that died or hang, on a thread and on TCP connections of its own, since MPI
/// never notices a stopped rank.
///
/// Rank 0 listens (on loopback when all ranks are on one host, else on all addresses, IPv4 and
/// IPv6), every other rank connects with a random token of this job. Both sides send a beat every
/// timeout / 10 (at most 2 s). A connection that ends without a farewell means that the process has
/// ended; `timeout` without a beat that it is stopped or out of reach. Rank 0 tells all others;
/// what it finds stands in `watch()`. Where nobody asks that for 3 s, since all threads compute,
/// the lowest rank that is left warns.
///
/// A process that itself did not run for a while (a suspended job, a frozen container) heard nobody
/// and begins to count anew, so that a job that is paused as a whole goes on.
///
/// This thread beats for its process whatever the others do, so a beat also carries the process's
/// `Activity`, from which rank 0 finds threads that hang (`StallWatch`). A process whose own thread
/// hangs is ended by its heartbeat, with exit code 69 and what the others were told.
///
/// On the wire: hello (magic, rank, token), then frames of fixed length; a connection that does not
/// say a right hello within 5 s is dropped, and so are those beyond 64 and the number of ranks that
/// have said none. Who is dropped tries again for 20 s.
class Heartbeat {
 public:
  /// Collective over `group`. Throws Error(kPeerLost) when rank 0 cannot be reached.
  /// @param activity  of this process; without it threads that hang are not found
  Heartbeat(const ProcessGroup& group, double timeout_seconds, std::shared_ptr<PeerWatch> watch,
            std::shared_ptr<const Activity> activity = nullptr);
  ~Heartbeat();  ///< ends the thread without a farewell
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  const PeerWatch& watch() const;
  /// From now on a rank that others wait for in a collective while it begins and ends none itself
  /// is warned of, and lost after `stall_seconds`; 0 = only warned of. Rank 0's word counts.
  void watch_stalls(double stall_seconds);
  /// Tells the others that this process ends and why, and ends the thread. With a code that is
  /// neither 0 nor 75 (saved after a signal) they count this rank as lost at once.
  void say_goodbye(int exit_code, const std::string& why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stretto::distributed
