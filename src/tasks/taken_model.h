#pragma once

#include "experiment/experiment.h"
#include "runs/initial_weights.h"

namespace stretto::tasks {

/// Compares `[model]` of the run that `train.init_from` names with that of the run that begins
/// (TaskRules::hidden_differences): weights would load, and mean something else. Throws
/// Error(kUsage) with keys and values. With `train.init_only`, which names what is taken, this is
/// a warning; so is a configuration of the other run that cannot be read. Asks nothing of a
/// checkpoint outside of a run.
void require_alike_model(const runs::InitialRun& run, const experiment::Experiment& own);

/// Whether the head of the run that `train.init_from` names is another task's: tensors of the same
/// name and shape then mean something else, as weights of classes and of the ends of an answer do.
/// Of tasks on encoded texts alone. False where the other run has no head (the pooler beside such
/// an encoder is any task's), or where nobody knows.
bool has_another_head(const runs::InitialRun& run, const experiment::Experiment& own);

}  // namespace stretto::tasks
