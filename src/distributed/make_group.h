#pragma once

#include <string>

#include "distributed/dist_options.h"
#include "distributed/launch.h"
#include "distributed/process_group.h"

namespace stretto::distributed {

enum class DeviceKind { kCpu, kCuda };

/// What carries the collectives of a job.
enum class Backend { kSingle, kMpi, kNccl };

/// Which backend `options.backend` and the launch mean together.
/// Throws Error(kUsage) for what cannot work, such as NCCL on a CPU or several processes that were
/// told to be single.
Backend choose_backend(const DistOptions& options, const Launch& launch, DeviceKind device);

/// Joins the processes that were started together, and starts the heartbeat between them. Once per
/// process, and collective; a process that was started alone becomes a group of one.
///
/// Throws Error(kUsage) for an impossible launch, Error(kUnsafe) for a rendezvous that strangers
/// could reach, Error(kPeerLost) for processes that do not come. A process that waits too long for
/// others to start MPI ends with exit code 69 here (`JoinWatch`). A process that joined must end
/// with `leave`.
ProcessGroup make_process_group(const DistOptions& options, DeviceKind device);

/// From here on a process that hangs while others wait for it ends the job after
/// `options.stall_seconds`; to be called by all when what may take any time, such as tokenising, is
/// done. Does nothing outside of a group.
void watch_stalls(const DistOptions& options);

/// The last thing a process does, with the code it is to leave with. Outside of a group it returns
/// `exit_code`. In one, after 0 or 75 it waits for the others to come here too, ends MPI and
/// returns the code; after any other code, or when a peer is lost meanwhile, it tells the others
/// `why` and ends the process at once, since MPI's own end would wait for ever.
int leave(int exit_code, const std::string& why = "");

}  // namespace stretto::distributed
