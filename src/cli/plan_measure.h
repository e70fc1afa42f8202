#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "plan/budget.h"

namespace stretto::cli {

/// A training that is only there to be measured.
struct MeasureRequest {
  std::string config;
  std::vector<std::string> overrides;  ///< of the plan, then of the size
  std::filesystem::path directory;     ///< run folder; one that was measured before is not trained
  double seconds = 15;                 ///< of training
};

/// Trains as a process of its own for so long, and at least six updates; its output goes to
/// `output.txt` of the folder. Throws Error with what it complained about.
void train_to_measure(const MeasureRequest& request);

/// Micro-batches of an update of the trainings that measure a configuration: two at least where
/// they give a noise scale, and the rate is that of the configuration for any number.
int64_t measured_update_freq(const experiment::Experiment& e);

/// What a run of one process has measured: time, memory, losses and noise scale, without its first
/// updates. Throws Error(kUsage) where it has too few.
/// @param e            how its metrics are read
/// @param update_freq  micro-batches of its updates
plan::MeasuredSize measured_run(const std::filesystem::path& run_directory,
                                const experiment::Experiment& e, const plan::ModelSize& size,
                                int64_t update_freq);

}  // namespace stretto::cli
