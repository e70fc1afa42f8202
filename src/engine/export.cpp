#include <algorithm>
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/stdout.h"
#include "base/text.h"
#include "engine/commands.h"
#include "interchange/model_folders.h"
#include "tasks/checkpoint_experiment.h"
#include "tasks/exported_run.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

void require_format(const tasks::Family& family, const experiment::Experiment& experiment,
                    const std::string& format) {
  const auto known = family.export_formats();
  if (std::ranges::count(known, format) > 0) return;
  throw Error(
      ExitCode::kUsage,
      "--format " + format + ": a model of " + experiment.task.name() + " is not written so",
      "formats for it: " + join(known, ", "));
}

}  // namespace

int run_export(const ExportRequest& request) {
  const auto run = tasks::open_exported_run(request);
  const auto& family = tasks::family_of(run.experiment);
  require_format(family, run.experiment, request.format);
  interchange::require_kind_of_class(run.experiment, request.model_type);
  const std::string model_class = family.export_model(run, request);
  std::cout << shown_on_stdout(request.folder + ": " + model_class + ", from " +
                               tasks::name_of(run.checkpoint.directory, run.folder))
            << std::endl;
  return 0;
}

}  // namespace stretto::engine
