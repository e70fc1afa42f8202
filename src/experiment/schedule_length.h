#pragma once

#include <cstdint>

#include "config/problem.h"
#include "experiment/experiment.h"

/// How many updates a schedule is made for, as far as a configuration tells.
namespace stretto::experiment {

/// schedule.total_steps, or without it train.max_steps; 0 when both are 0: then train.max_epochs
/// decides, whose updates only the data tell.
int64_t schedule_length(const Experiment& options);

/// Defaults that yield to a key that was given: beside schedule.warmup_ratio the default of
/// schedule.warmup_steps is 0, that of train.keep_last is no less than train.average_last, and that
/// of eval.best_metric is the first score of the task.
/// schedule.d_model, which is gone, is the model's width with noam, as it had to be. To be called
/// before the rules look.
void resolve_defaults(Experiment& options, const config::Origins& origins);

}  // namespace stretto::experiment
