#include "base/error.h"
#include "distributed/launch.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "tasks/registry.h"

namespace stretto::engine {

int run_infer(const InferRequest& request) {
  if (distributed::detect_launch().kind != distributed::Launch::Kind::kSingle) {
    throw Error(ExitCode::kUsage, "stretto infer is one process, and was started as several",
                "start it once for each part of the text");
  }
  const auto& experiment = request.experiment.options;
  const at::Device device = prepare_process(experiment);
  tell_of_fallbacks(device);
  return tasks::family_of(experiment).infer(request, {.group = {}, .device = device});
}

}  // namespace stretto::engine
