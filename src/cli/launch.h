#pragma once

#include <functional>
#include <string>
#include <vector>

#include "distributed/dist_options.h"

namespace stretto::cli {

/// `stretto train … --processes N`, or eval: the words of the user's command, to be run N times.
struct LaunchRequest {
  std::vector<std::string> words;  ///< "train", config, keys and options, without --processes
  int processes = 1;
  int restarts = 0;
  distributed::DistOptions dist = {};
  std::function<std::string()> saved = {};  ///< as in launcher::LocalJob
};

/// Starts the processes with mpirun on this machine and waits for them; their exit code.
/// Throws Error(kUsage) inside a job of another launcher, when `dist.backend` allows one process
/// only, and when mpirun is missing.
int launch(const LaunchRequest& request);

/// For infer and embed: lines are read as they come, which one process alone can see.
/// @param command  "stretto infer"
/// @param advice   what else does it with several processes; empty = nothing
/// Throws Error(kUsage) where this process was started with others.
void require_one_process(const std::string& command, const std::string& advice = "");

/// How a process of a job logs: rank 0 as ever, others only warnings and errors, with their rank.
void set_job_logging(int rank, bool quiet);

/// For commands that start processes of their own. Throws Error(kUsage) where this process was
/// started with others.
/// @param what  "a search is one process"
void require_own_start(const std::string& what, const std::string& advice);

}  // namespace stretto::cli
