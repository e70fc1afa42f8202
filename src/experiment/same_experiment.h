#pragma once

#include <filesystem>

#include "experiment/load_experiment.h"

namespace stretto::experiment {

/// Refuses to go on with the run in a folder when `now` is another experiment: Error(kUsage) with
/// the keys that differ. Does nothing when the folder holds no run, or one that failed before it
/// had a tokenizer or a checkpoint (a vocabulary too large for its text, say), which may be begun
/// anew.
///
/// @param extend  train.max_steps may differ although it shapes the schedule
void require_same_experiment(const std::filesystem::path& run_directory,
                             const LoadedExperiment& now, bool extend);

}  // namespace stretto::experiment
