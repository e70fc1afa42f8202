#pragma once

#include <string>

#include "experiment/experiment.h"
#include "runs/run_folder.h"
#include "store/checkpoint.h"

namespace stretto::tasks {

/// The experiment that describes a checkpoint's model, for a run that uses it: `own`, the run's, or
/// that of the run folder where the checkpoint lies. A checkpoint of another run without its run
/// folder is described by nobody, unless its configuration is the run's.
///
/// One vocabulary stands for one set of pieces: the other run's tokenizer must have the files of
/// this run's, byte for byte, and its model room for the data of `own` (Family::require_room).
///
/// Throws Error(kBadData) when it is not so, or the other folder's configuration is not that of its
/// run (experiment/run_config.h); Error(kUsage) when nothing describes the model.
experiment::Experiment checkpoint_experiment(const store::LoadedCheckpoint& checkpoint,
                                             const runs::RunFolder& run,
                                             const experiment::Experiment& own);

/// Refuses to take the mean of weights whose models differ in more than their weights: throws
/// Error(kBadData) with the keys of [model] that differ.
void require_same_model(const store::LoadedCheckpoint& checkpoint,
                        const experiment::Experiment& described, const experiment::Experiment& own);

/// What people call it: the folder's name, or of another run the path.
std::string name_of(const std::filesystem::path& checkpoint, const runs::RunFolder& run);

}  // namespace stretto::tasks
