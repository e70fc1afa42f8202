#include "tasks/family.h"

#include "base/error.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {

std::string Family::export_model(const ExportedRun& run, const ExportRequest& /*request*/) const {
  throw Error(ExitCode::kUsage,
              "task.name: a model of " + run.experiment.task.name() +
                  " has no class in transformers that is equal to it",
              "the checkpoint itself is safetensors (RUN/checkpoints), which other programs read");
}

}  // namespace stretto::tasks
