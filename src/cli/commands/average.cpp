#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

int run_average(const engine::AverageRequest& request) {
  if ((request.last > 0) == !request.checkpoints.empty()) {
    throw Error(ExitCode::kUsage, "stretto average: give either --last N or --checkpoints A,B,C",
                "`stretto average RUN --last 5` is usual");
  }
  if (request.name.empty() || request.name.find('/') != std::string::npos ||
      request.name.starts_with(".")) {
    throw Error(ExitCode::kUsage,
                "stretto average: `" + request.name + "` is no name for a checkpoint",
                "use letters, digits, - and _");
  }
  require_run(request.run_directory);
  return engine().average(request);
}

}  // namespace

std::function<int()> declare_average(CLI::App& app) {
  auto request = std::make_shared<engine::AverageRequest>();
  app.add_option("RUN", request->run_directory, "run folder")->required()->type_name("");
  app.add_option("--last", request->last, "mean of the newest N checkpoints that are whole")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  app.add_option("--checkpoints", request->checkpoints,
                 "mean of these (names, steps or paths), separated by commas")
      ->type_name("A,B,C");
  app.add_option("--name", request->name, "name of the new checkpoint; default averaged")
      ->type_name("NAME");
  return [request] { return run_average(*request); };
}

}  // namespace stretto::cli
