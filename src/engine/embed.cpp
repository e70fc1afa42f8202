#include "families/text/engine/embed.h"

#include "engine/commands.h"
#include "engine/session.h"
#include "kernels/compute.h"

namespace stretto::engine {

int run_embed(const EmbedRequest& request) {
  const at::Device device = prepare_process(request.experiment.options);
  tell_of_fallbacks(device);
  const kernels::ComputeScope arithmetic(
      scoring_precision(request.experiment.options, device).compute);
  return tasks::embed_lines(request, {.group = {}, .device = device});
}

}  // namespace stretto::engine
