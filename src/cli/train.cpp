#include "base/log.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "experiment/same_experiment.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::string run;
  bool extend = false, quiet = false;
};

int run(const Options& options) {
  log::set_quiet(options.quiet);
  experiment::TrainRequest request{
      .experiment = experiment::load_experiment(options.config, options.overrides),
      .run_directory = options.run,
      .extend = options.extend};
  if (request.run_directory.empty()) {
    request.run_directory = (fs::path("runs") / fs::path(options.config).stem()).string();
  }
  experiment::require_same_experiment(request.run_directory, request.experiment, options.extend);
  return engine().train(request);
}

}  // namespace

std::function<int()> declare_train(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("CONFIG", options->config, "configuration file")->required()->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_option("--run", options->run, "run folder; default runs/<name of CONFIG>")
      ->type_name("DIR");
  app.add_flag("--extend", options->extend,
               "accept another train.max_steps where it bends the schedule");
  app.add_flag("--quiet", options->quiet, "only warnings and errors on the screen");
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
