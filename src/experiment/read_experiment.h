#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment.h"
#include "experiment/other_model.h"

namespace stretto::experiment {

/// Where the values of a configuration stand.
struct ReadExperiment {
  config::Origins origins;
  /// Which keys were left to the run of `train.init_from`, in one line; empty = none were.
  std::string taken;
  /// The run goes on, and has its model: the folder of `train.init_from` may be gone.
  bool has_model = false;
};

/// Reads a file and overrides into `options`, without rules. Keys of `[model]` and `[tokenizer]`
/// that are not given have the values of the model that `train.init_from` names
/// (experiment/other_model.h).
/// @param fallback  gets the defaults of the same parts
ReadExperiment read_experiment(const std::filesystem::path& path,
                               const std::vector<std::string>& overrides,
                               const ReadContext& read_context, Experiment& options,
                               Experiment& fallback, std::vector<config::Problem>& problems);

/// Takes out what is said of the file of `train.init_from` where the run has its model already.
void forget_initial_run(const ReadExperiment& read, std::vector<config::Problem>& missing);

}  // namespace stretto::experiment
