#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/family_options.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "distributed/launch.h"

namespace stretto::cli {
namespace {

struct EvalArguments {
  std::string run, checkpoint;
  FamilyOptions own{commands_of_families([](const auto& family) { return &family.eval; })};
  std::vector<std::string> overrides;
  bool json = false;
  int processes = 0;  // 0: not asked for
};

std::vector<std::string> eval_words(const EvalArguments& options) {
  std::vector<std::string> words{"eval", options.run};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  if (!options.checkpoint.empty()) {
    words.insert(words.end(), {"--checkpoint", options.checkpoint});
  }
  const auto own = options.own.words();
  words.insert(words.end(), own.begin(), own.end());
  if (options.json) words.push_back("--json");
  return words;
}

// A second file behind --data, say.
void require_keys(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (is_override(word)) continue;
    throw Error(ExitCode::kUsage, "stretto eval: unexpected `" + printable(word) + "`",
                "keys are section.key=value; each further file has a --data of its own");
  }
}

int run_eval(const EvalArguments& options) {
  options.own.check_values();
  require_keys(options.overrides);
  std::vector<ForeignPath> left_out;
  engine::EvalRequest request{
      .experiment = load_run_config(options.run, options.overrides, Reads::kAnyData,
                                    KeepPaths::kNone, left_out),
      .run_directory = options.run,
      .checkpoint = options.checkpoint,
      .json = options.json};
  const auto& experiment = request.experiment.options;
  options.own.require_own(experiment);
  if (!options.own.name_data()) {
    require_own_data(left_out, request.experiment, options.run,
                     options.own.data_words(experiment.task.name()));
  }
  request.own = options.own.values(experiment);
  if (options.processes > 1) {
    return launch(
        {.words = eval_words(options), .processes = options.processes, .dist = experiment.dist});
  }
  const int rank = distributed::detect_launch().rank;
  set_job_logging(rank, /*quiet=*/false);
  if (rank == 0) {
    tell_notes(request.experiment.origins);
    tell_of_foreign_cache(left_out);
  }
  return engine().eval(request);
}

}  // namespace

std::function<int()> declare_eval(CLI::App& app) {
  auto options = std::make_shared<EvalArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("key=value", options->overrides, "for instance decode.beam_size=8")->type_name("");
  app.add_option(
         "--checkpoint", options->checkpoint,
         "best, last, a step, a name, a path, or several with commas: an ensemble, of tasks "
         "that have one; default best")
      ->type_name("NAME");
  options->own.declare(app);
  app.add_flag("--json", options->json, "one JSON object on stdout");
  app.add_option("--processes", options->processes,
                 "share the data out among so many processes on this machine, started with mpirun")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  return [options] { return run_eval(*options); };
}

}  // namespace stretto::cli
