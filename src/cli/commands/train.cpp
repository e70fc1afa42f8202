#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/configuration_file.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/seeds.h"
#include "data/start_memory.h"
#include "distributed/launch.h"
#include "experiment/preflight.h"
#include "experiment/same_experiment.h"
#include "store/checkpoint.h"
#include "store/run_record.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string run, seeds;
  bool extend = false, accept_data = false, quiet = false, json = false;
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
  if (options.accept_data) words.push_back("--accept-data");
  if (options.quiet) words.push_back("--quiet");
  if (options.until > 0) words.insert(words.end(), {"--until", std::to_string(options.until)});
  return words;
}

// The command of one of several seeds, but for the seed.
std::vector<std::string> words_of_seed(const TrainArguments& options,
                                       const std::string& run_directory) {
  auto words = train_words(options, run_directory);
  if (options.processes > 0) {
    words.insert(words.end(), {"--processes", std::to_string(options.processes)});
  }
  if (options.restarts > 0) {
    words.insert(words.end(), {"--restarts", std::to_string(options.restarts)});
  }
  return words;
}

std::string run_directory_of(const TrainArguments& options) {
  if (!options.run.empty()) return options.run;
  return (fs::path("runs") / fs::path(options.config).stem()).string();
}

std::string what_is_saved(const std::string& run_directory) {
  const auto steps = store::CheckpointStore(run_directory).steps();
  if (steps.empty()) return "nothing was saved: the same command begins anew";
  return "the last checkpoint is that of step " + with_thousands(steps.back()) +
         ": the same command goes on from there";
}

// When a run goes on, only the patterns are compared.
void require_sound(const experiment::LoadedExperiment& experiment,
                   const experiment::RunState& run_state) {
  const auto checks = engine_checks();
  if (!run_state.begins) return experiment::require_patterns_match(experiment, checks.tensors);
  experiment::require_sound_start(experiment, checks);
}

int run_train(const TrainArguments& options) {
  ignore_broken_pipes();  // whoever reads the output may leave; log.txt has it all
  log::set_quiet(options.quiet);
  if (!options.seeds.empty()) {
    return train_seeds(
        {.config = options.config,
         .overrides = options.overrides,
         .directory = run_directory_of(options),
         .seeds = options.seeds,
         .extend = options.extend,
         .accept_data = options.accept_data,
         .json = options.json,
         .until = options.until,
         .words = [&](const std::string& run) { return words_of_seed(options, run); }});
  }
  if (options.json) {
    throw Error(ExitCode::kUsage, "stretto train: --json goes with --seeds",
                "metrics.jsonl of the run has its numbers");
  }
  const std::string run_directory = run_directory_of(options);
  if (options.processes <= 1 && options.restarts == 0) begin_to_open_engine();
  engine::TrainRequest request{
      .experiment = load_configuration(options.config, options.overrides, run_directory),
      .run_directory = run_directory,
      .extend = options.extend,
      .accept_data = options.accept_data,
      .until = options.until};
  require_no_seeds(request.run_directory);
  const auto launched = distributed::detect_launch();
  const int rank = launched.rank;
  experiment::RunState run_state;
  if (rank == 0) {  // the others may have paths of their own
    run_state = experiment::require_same_experiment(request.run_directory, request.experiment,
                                                    options.extend);
  }
  // Everything that can be refused has been refused once, before there are several processes.
  if (options.processes > 1 || options.restarts > 0) {
    require_sound(request.experiment, run_state);
    // Rank 0 will ask for the lock too; a refusal here comes before any process has started.
    store::lock_run(request.run_directory);  // and let go again
    // Failures of ranks are reported here, perhaps to a terminal that is gone.
    log::open_file(fs::path(request.run_directory) / "log.txt");
    return launch({.words = train_words(options, request.run_directory),
                   .processes = std::max(1, options.processes),
                   .restarts = options.restarts,
                   .dist = request.experiment.options.dist,
                   .saved = [&] { return what_is_saved(request.run_directory); }});
  }
  set_job_logging(rank, options.quiet);
  if (rank == 0) {  // of several processes, one
    tell_notes(request.experiment.origins);
    tell_unread_keys(request.experiment);
    if (!request.experiment.taken.empty()) log::info(request.experiment.taken);
  }
  const data::StartMemory start_memory;  // of what is read here and there
  if (launched.kind == distributed::Launch::Kind::kSingle) {
    require_sound(request.experiment, run_state);
    request.is_looked_at = true;
    // A run that has a tokenizer has been begun before, and most of it lies in the cache.
    const bool is_new = run_state.begins && !fs::exists(fs::path(run_directory) / "tokenizer");
    if (is_new) experiment::prepare_data(request.experiment.options);
  }
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
  app.add_flag("--accept-data", options->accept_data,
               "go on although training or validation data have changed since; the run notes it");
  app.add_option(
         "--until", options->until,
         "validate, save and leave after so many updates of the run, whose schedule and end "
         "stay as they are; the same command without it goes on")
      ->type_name("N")
      ->check(whole_number(1, INT64_MAX));
  app.add_option("--seeds", options->seeds,
                 "train several seeds one after the other, each in DIR/seed_N, and print mean and "
                 "deviation: 5 means 1 to 5, 3,7,9 means these")
      ->type_name("N|A,B,C");
  app.add_flag("--json", options->json, "of --seeds: print scores, means and deviations as JSON");
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
