#include <iostream>

#include "base/stdout.h"
#include "engine/commands.h"
#include "interchange/model_folders.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/exported_run.h"
#include "tasks/registry.h"

namespace stretto::engine {

int run_export(const ExportRequest& request) {
  const auto run = tasks::open_exported_run(request);
  interchange::require_kind_of_class(run.experiment, request.model_type);
  const std::string model_class = tasks::family_of(run.experiment).export_model(run, request);
  std::cout << shown_on_stdout(request.folder + ": " + model_class + ", from " +
                               tasks::name_of(run.checkpoint.directory, run.folder))
            << std::endl;
  return 0;
}

}  // namespace stretto::engine
