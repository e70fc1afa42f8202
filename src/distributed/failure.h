#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "distributed/launch.h"

namespace stretto::distributed {

/// How a process ended that was not meant to end.
struct Failure {
  int exit_code = 0;
  std::string message;
  std::optional<int> lost_rank;  ///< of a loss that others see too; empty for an error of its own
  bool told = false;             ///< the lost one had an error of its own, and has reported it
};

/// The failure of an error that was caught.
Failure failure_of(const Error& error);

/// Reports a failure where it belongs: to the launcher of `--processes`, which puts the ranks'
/// messages in order, else on the terminal. Where there are several processes, each error carries
/// rank and host, and the last lines that only `--quiet` or the rank kept from the terminal.
///
/// What several ranks have in common is reported once: the same message on one host by the first
/// rank that leaves a mark in PMIX_SERVER_TMPDIR, which mpirun and srun remove when they end (the
/// others wait 0.1 s for it); a lost rank by the lowest that is left, or by none when it has
/// reported its own error. Where that cannot be known, each reports its own.
void report_failure(const Failure& failure);

/// Whether this process is the one to report it, as described above. Waits up to 0.1 s, and leaves
/// its mark.
bool is_reporter(const Launch& launch, const Failure& failure, const Environment& environment);

}  // namespace stretto::distributed
