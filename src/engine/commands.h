#pragma once

#include "engine/engine_api.h"

/// The commands that need libtorch, as the engine library offers them; each returns an exit code
/// and throws Error for what a user can act on.
namespace stretto::engine {

int run_train(const TrainRequest& request);
int run_eval(const EvalRequest& request);
int run_infer(const InferRequest& request);
int run_embed(const EmbedRequest& request);
int run_average(const AverageRequest& request);
int run_import(const ImportRequest& request);
int run_export(const ExportRequest& request);
int run_compress(const CompressRequest& request);
int run_bench(const BenchRequest& request);

/// What training would stop at, of what only libtorch can tell.
experiment::Preflight run_check(const experiment::CheckRequest& request);

/// The parameters of the model that an experiment describes, in the arena's order. The model is
/// made without memory. Throws Error(kUsage) as models::make_model() does.
std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment);

/// What that model weighs and what training it costs; made without memory too. Throws Error(kUsage)
/// as models::make_model() does.
models::ModelCost model_cost(const CostRequest& request);

/// 0 when the update is not finite again, 1 when it is finite now.
int run_replay(const ReplayRequest& request);

}  // namespace stretto::engine
