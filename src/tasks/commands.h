#pragma once

#include "experiment/engine_api.h"

/// The commands that need libtorch, as the engine library offers them; each returns an exit code
/// and throws Error for what a user can act on.
namespace stretto::tasks {

int run_train(const experiment::TrainRequest& request);
int run_eval(const experiment::EvalRequest& request);
int run_infer(const experiment::InferRequest& request);
int run_average(const experiment::AverageRequest& request);

/// What training would stop at, of what only libtorch can tell.
experiment::Preflight run_check(const experiment::CheckRequest& request);

/// 0 when the update is not finite again, 1 when it is finite now.
int run_replay(const experiment::ReplayRequest& request);

}  // namespace stretto::tasks
