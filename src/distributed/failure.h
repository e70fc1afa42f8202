#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "distributed/launch.h"

namespace stretto::distributed {

/// How a process ends that was not meant to.
struct Failure {
  int exit_code = 0;
  std::string message;
  std::optional<int> lost_rank;  ///< of a loss that others see too; empty for an error of its own
  bool told = false;             ///< the lost one had an error of its own, and has told it
};

/// Of an error that was caught.
Failure failure_of(const Error& error);

/// Tells a failure where it is to be told: to the launcher of `--processes`, which puts the ranks'
/// words in order, else on the screen. Of several processes each error carries rank and host, and
/// the last lines that only `--quiet` or the rank kept from the screen.
///
/// What several ranks have alike is told once: the same message on one host (the first that leaves
/// a mark in PMIX_SERVER_TMPDIR, which mpirun and srun remove when they end, tells it; others wait
/// 0.1 s for the host's first); a lost rank by the lowest that is left, and by nobody when it has
/// told its own error. Where that cannot be known each tells its own.
void report_failure(const Failure& failure);

/// Whether the process of this launch is the one to tell it, as described above.
/// Waits up to 0.1 s, and leaves its mark.
bool is_reporter(const Launch& launch, const Failure& failure, const Environment& environment);

}  // namespace stretto::distributed
