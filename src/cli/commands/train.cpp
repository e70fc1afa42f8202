#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "distributed/launch.h"
#include "experiment/same_experiment.h"
#include "store/checkpoint.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run;
  bool extend = false, quiet = false;
  int processes = 0;  // 0: not asked for
  int restarts = 0;
  int64_t until = 0;
};

std::vector<std::string> train_words(const TrainArguments& options,
                                     const std::string& run_directory) {
  std::vector<std::string> words{"train", options.config};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  words.insert(words.end(), {"--run", run_directory});
  if (options.extend) words.push_back("--extend");
  if (options.quiet) words.push_back("--quiet");
  if (options.until > 0) words.insert(words.end(), {"--until", std::to_string(options.until)});
  return words;
}

// What rank 0 will ask for too; here nobody is there yet whom a refusal would surprise.
void require_free_folder(const fs::path& run_directory) {
  if (fs::exists(run_directory) && !fs::is_directory(run_directory)) {
    throw Error(ExitCode::kUsage, run_directory.string() + " is not a folder",
                "give another --run folder");
  }
  make_directories(run_directory);
  FileLock::try_now(run_directory / ".lock", "stretto train");  // and let go again
}

std::string what_is_saved(const std::string& run_directory) {
  const auto steps = store::CheckpointStore(run_directory).steps();
  if (steps.empty()) return "nothing was saved: the same command begins anew";
  return "the last checkpoint is that of step " + with_thousands(steps.back()) +
         ": the same command goes on from there";
}

int run_train(const TrainArguments& options) {
  ignore_broken_pipes();  // who reads the screen may leave; log.txt has the words
  log::set_quiet(options.quiet);
  engine::TrainRequest request{
      .experiment = experiment::load_experiment(options.config, options.overrides),
      .run_directory = options.run,
      .extend = options.extend,
      .until = options.until};
  if (request.run_directory.empty()) {
    request.run_directory = (fs::path("runs") / fs::path(options.config).stem()).string();
  }
  const int rank = distributed::detect_launch().rank;
  if (rank == 0) {  // the others may have paths of their own
    experiment::require_same_experiment(request.run_directory, request.experiment, options.extend);
  }
  // Whatever can be refused has been, once, before there are several processes to refuse it.
  if (options.processes > 1 || options.restarts > 0) {
    experiment::require_patterns_match(request.experiment,
                                       [](const auto& e) { return engine().tensor_names(e); });
    require_free_folder(request.run_directory);
    // What ranks die of is told here, maybe to a screen that is gone.
    log::open_file(fs::path(request.run_directory) / "log.txt");
    return launch({.words = train_words(options, request.run_directory),
                   .processes = std::max(1, options.processes),
                   .restarts = options.restarts,
                   .dist = request.experiment.options.dist,
                   .saved = [&] { return what_is_saved(request.run_directory); }});
  }
  speak_as(rank, options.quiet);
  if (rank == 0) tell_notes(request.experiment.origins);  // of several processes, one
  return engine().train(request);
}

}  // namespace

std::function<int()> declare_train(CLI::App& app) {
  auto options = std::make_shared<TrainArguments>();
  app.add_option("CONFIG", options->config, "configuration file")->required()->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_option("--run", options->run, "run folder; default runs/<name of CONFIG>")
      ->type_name("DIR");
  app.add_flag("--extend", options->extend,
               "accept another train.max_steps or train.max_epochs where it bends the schedule");
  app.add_option(
         "--until", options->until,
         "validate, save and leave after so many updates of the run, whose schedule and end "
         "stay as they are; the same command without it goes on")
      ->type_name("N")
      ->check(whole_number(1, INT64_MAX));
  app.add_flag("--quiet", options->quiet, "only warnings and errors on the screen");
  app.add_option("--processes", options->processes,
                 "train with so many processes on this machine, started with mpirun")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  app.add_option("--restarts", options->restarts,
                 "start again so often, from the last checkpoint, after a process was lost")
      ->type_name("K")
      ->check(whole_number(0, 1'000'000));
  return [options] { return run_train(*options); };
}

}  // namespace stretto::cli
