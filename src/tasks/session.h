#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "experiment/load_experiment.h"
#include "tasks/translation.h"
#include "train/run_folder.h"

namespace stretto::tasks {

/// Threads and device of this process as an experiment asks for them; says what it chose.
/// Throws Error(kUsage) when `run.device = "cuda"` and there is no such device.
at::Device prepare_process(const experiment::Experiment& experiment);

/// Models of a run for reading: tokenizers from the run folder and one network for each checkpoint.
struct LoadedRun {
  text::TokenizerPair tokenizers;
  std::vector<std::shared_ptr<models::Seq2SeqModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};

/// @param checkpoints  names or steps with commas; empty = best, else last
/// Throws Error(kUsage) when the run has none, Error(kBadData) when one is broken or does not fit.
LoadedRun load_run(const experiment::Experiment& experiment, const train::RunFolder& folder,
                   const std::string& checkpoints);

}  // namespace stretto::tasks
