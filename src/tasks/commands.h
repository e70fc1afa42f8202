#pragma once

#include "experiment/engine_api.h"

/// The commands that need libtorch, as the engine library offers them; each returns an exit code
/// and throws Error for what a user can act on.
namespace stretto::tasks {

int run_train(const experiment::TrainRequest& request);
int run_eval(const experiment::EvalRequest& request);
int run_infer(const experiment::InferRequest& request);
int run_average(const experiment::AverageRequest& request);

}  // namespace stretto::tasks
