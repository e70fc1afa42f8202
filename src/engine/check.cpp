#include "distributed/make_group.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

using experiment::Preflight;
using experiment::Stage;

// As run_train() asks for them: one process, since who starts several is not known here.
void check_machine(const experiment::Experiment& experiment, Preflight& found) {
  const size_t before = found.stops.size();
  experiment::note_stop(found, Stage::kMachine, "run.device", [&] { prepare_process(experiment); });
  if (found.stops.size() > before) return;  // NCCL would miss the same GPU
  experiment::note_stop(found, Stage::kMachine, "dist.backend", [&] {
    distributed::choose_backend(experiment.dist, distributed::Launch{}, device_kind(experiment));
  });
}

}  // namespace

Preflight run_check(const experiment::CheckRequest& request) {
  Preflight found;
  const auto& experiment = request.experiment.options;
  if (request.machine) check_machine(experiment, found);
  if (request.weights) tasks::family_of(experiment).check_weights(request, found);
  return found;
}

std::vector<optim::TensorName> tensor_names(const experiment::Experiment& experiment) {
  return tasks::family_of(experiment).tensor_names(experiment);
}

models::ModelCost model_cost(const CostRequest& request) {
  return tasks::family_of(request.experiment).model_cost(request);
}

}  // namespace stretto::engine
