#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

/// `stretto train … --processes N`: the words of the user's command, to be run N times.
struct LaunchRequest {
  std::vector<std::string> words;  ///< "train", config, keys and options, without --processes
  int processes = 1;
  int restarts = 0;
  double timeout_seconds = 60;  ///< dist.timeout_seconds
};

/// Starts the processes with mpirun on this machine and waits for them; their exit code.
/// Throws Error(kUsage) inside a job of another launcher, and when mpirun is missing.
int launch(const LaunchRequest& request);

}  // namespace stretto::cli
