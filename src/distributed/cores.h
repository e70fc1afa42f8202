#pragma once

#include <cstdint>
#include <string>

#include "distributed/process_group.h"

namespace stretto::distributed {

/// Compute threads for this process: `configured` when it is not 0, else this process's fair share
/// of the cores that it may use. Processes of one host whose CPU masks overlap share cores; those
/// that the launcher bound to cores of their own do not. OMP_NUM_THREADS, where it is set, is an
/// upper limit of the share. At least 1. Collective when the group has
/// more than one process and `configured` is 0, which must be so on all or none of them.
int64_t threads_for(const ProcessGroup& group, int64_t configured);

/// Names the booted machine; its processes may be in containers with names of their own.
std::string machine_id();

/// Names what processes must share to reach each other over loopback: the booted machine and its
/// network namespace.
std::string network_place();

}  // namespace stretto::distributed
