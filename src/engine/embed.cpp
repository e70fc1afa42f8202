#include "engine/commands.h"
#include "engine/session.h"
#include "kernels/compute.h"
#include "tasks/registry.h"

namespace stretto::engine {

int run_embed(const EmbedRequest& request) {
  const auto& experiment = request.experiment.options;
  const at::Device device = prepare_process(experiment);
  tell_of_fallbacks(device);
  const kernels::ComputeScope arithmetic(scoring_precision(experiment, device).compute);
  return tasks::family_of(experiment).embed(request, {.group = {}, .device = device});
}

}  // namespace stretto::engine
