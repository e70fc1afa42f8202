#include "base/log.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "dist/launch.h"
#include "experiment/same_experiment.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  std::string run;
  bool extend = false, quiet = false;
  int processes = 0;  // 0: not asked for
  int restarts = 0;
};

std::vector<std::string> words_of(const Options& options, const std::string& run_directory) {
  std::vector<std::string> words{"train", options.config};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  words.insert(words.end(), {"--run", run_directory});
  if (options.extend) words.push_back("--extend");
  if (options.quiet) words.push_back("--quiet");
  return words;
}

int run(const Options& options) {
  log::set_quiet(options.quiet);
  experiment::TrainRequest request{
      .experiment = experiment::load_experiment(options.config, options.overrides),
      .run_directory = options.run,
      .extend = options.extend};
  if (request.run_directory.empty()) {
    request.run_directory = (fs::path("runs") / fs::path(options.config).stem()).string();
  }
  const int rank = dist::detect_launch().rank;
  if (rank == 0) {  // the others may have paths of their own
    experiment::require_same_experiment(request.run_directory, request.experiment, options.extend);
  }
  // Whatever can be refused has been, once, before there are several processes to refuse it.
  if (options.processes > 1 || options.restarts > 0) {
    return launch({.words = words_of(options, request.run_directory),
                   .processes = std::max(1, options.processes),
                   .restarts = options.restarts,
                   .timeout_seconds = request.experiment.options.dist.timeout_seconds});
  }
  log::set_quiet(options.quiet || rank > 0);
  if (rank > 0) log::set_prefix("rank " + std::to_string(rank) + ": ");
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
  app.add_option("--processes", options->processes,
                 "train with so many processes on this machine, started with mpirun")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  app.add_option("--restarts", options->restarts,
                 "start again so often, from the last checkpoint, after a process was lost")
      ->type_name("K")
      ->check(whole_number(0, 1'000'000));
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
