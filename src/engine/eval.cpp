#include "engine/commands.h"
#include "engine/session.h"
#include "kernels/compute.h"
#include "tasks/registry.h"

namespace stretto::engine {

int run_eval(const EvalRequest& request) {
  const auto& experiment = request.experiment.options;
  const auto group = join_processes(experiment);
  require_same_start(experiment, group);
  const at::Device device = prepare_process(experiment, group);
  tell_of_fallbacks(device, group);
  const kernels::ComputeScope arithmetic(scoring_precision(experiment, device, group).compute);
  return tasks::family_of(experiment).eval(request, {.group = group, .device = device});
}

}  // namespace stretto::engine
