#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stretto::cli {

/// `stretto train … --seeds LIST`
struct SeedsRequest {
  std::string config;
  std::vector<std::string> overrides;
  std::string directory;  ///< DIR, with a folder for each seed
  std::string seeds;      ///< as seeds::parse_seeds() takes it
  bool extend = false, accept_data = false, json = false;
  int64_t until = 0;
  /// The words of the user's command for one run folder, without a seed: "train", config, ….
  std::function<std::vector<std::string>(const std::string& run_directory)> words;
};

/// Trains each seed in DIR/seed_N with a process of its own, and prints mean and deviation.
/// @return the exit code, see seeds::SeedsRunner::run()
/// Throws Error(kUsage) where a folder holds another experiment, where run.seed is set too, and
/// inside a job of a launcher.
int train_seeds(const SeedsRequest& request);

/// Throws Error(kUsage) where `directory` holds the runs of several seeds: another run there would
/// stand between them.
void require_no_seeds(const std::string& directory);

}  // namespace stretto::cli
