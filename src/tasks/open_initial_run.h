#pragma once

#include "experiment/experiment.h"
#include "runs/initial_weights.h"

namespace stretto::tasks {

/// What `train.init_from` of an experiment names: a run or checkpoint, as runs::open_initial_run()
/// opens it; or a model folder of `transformers`, which is imported in memory. Its `folder` is then
/// that folder. Throws as runs::open_initial_run() and interchange::import_initial_model() do.
runs::InitialRun open_initial_run(const experiment::Experiment& experiment,
                                  runs::Reading reading = runs::Reading::kAll);

/// The same for weights that a run takes now: the log says what was imported, and what was left
/// out.
runs::InitialRun open_and_tell_initial_run(const experiment::Experiment& experiment);

}  // namespace stretto::tasks
