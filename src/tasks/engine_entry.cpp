#include <ATen/Version.h>
#include <torch/torch.h>

#include "experiment/engine_api.h"
#include "tasks/commands.h"

namespace stretto::tasks {
namespace {

const char* describe_engine() {
  static const std::string text =
      c10::str("libtorch ", TORCH_VERSION, ", ", at::get_cpu_capability(), ", ",
               torch::cuda::is_available() ? "CUDA available" : "no CUDA device");
  return text.c_str();
}

}  // namespace
}  // namespace stretto::tasks

extern "C" const stretto::experiment::EngineApi stretto_engine{
    .train = &stretto::tasks::run_train,
    .eval = &stretto::tasks::run_eval,
    .infer = &stretto::tasks::run_infer,
    .average = &stretto::tasks::run_average,
    .replay = &stretto::tasks::run_replay,
    .describe = &stretto::tasks::describe_engine,
};
