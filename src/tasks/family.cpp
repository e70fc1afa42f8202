#include "tasks/family.h"

#include "base/error.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {

int Family::embed(const EmbedRequest& request, const CommandContext& /*context*/) const {
  throw Error(ExitCode::kUsage,
              request.run_directory + " is a run of " + request.experiment.options.task.name() +
                  ", whose model gives no vectors of whole lines",
              "name a run whose model encodes texts");
}

std::string Family::export_model(const ExportedRun& run, const ExportRequest& /*request*/) const {
  throw Error(ExitCode::kUsage,
              "task.name: a model of " + run.experiment.task.name() +
                  " has no class in transformers that is equal to it",
              "the checkpoint itself is safetensors (RUN/checkpoints), which other programs read");
}

}  // namespace stretto::tasks
