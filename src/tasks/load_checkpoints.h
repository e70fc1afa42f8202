#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "runs/run_folder.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// All files that later commands need from a run folder. Throws Error(kUsage) while there are none:
/// the tokenizer is among them.
Assets assets_of(const runs::RunFolder& folder);

/// The network of a checkpoint, without weights.
struct CheckpointNetwork {
  /// Makes it for the experiment that describes it, and keeps it. Called once for each checkpoint,
  /// in their order.
  std::function<torch::nn::Module&(const experiment::Experiment& described)> make;
  /// Throws for an experiment whose models the caller cannot use; null: it can use all.
  std::function<void(const experiment::Experiment& described)> check = {};
};

/// Reads networks of a run for evaluation: one for each checkpoint, which may be another run's
/// (tasks/checkpoint_experiment.h).
/// @param checkpoints  names, steps or paths with commas (runs/choose_checkpoint.h); empty = best,
///                     else last
/// @param tokenizer    the files of the run's tokenizer
/// @return the folders of the checkpoints
/// Writes nothing. Throws Error(kUsage) when the run has none, Error(kBadData) when one that was
/// named is damaged, none is whole, or one does not fit its model or the run's tokenizer.
std::vector<std::filesystem::path> load_checkpoints(const experiment::Experiment& experiment,
                                                    const runs::RunFolder& folder,
                                                    const std::string& checkpoints,
                                                    const Assets& tokenizer,
                                                    const CheckpointNetwork& network);

/// "best", "step_00000100,/other/run/checkpoints/…": for messages.
std::string checkpoint_names(const std::vector<std::filesystem::path>& checkpoints,
                             const runs::RunFolder& folder);
/// The hash of all files of the checkpoints, for processes to compare.
std::string checkpoint_hash(const std::vector<std::filesystem::path>& checkpoints);

}  // namespace stretto::tasks
