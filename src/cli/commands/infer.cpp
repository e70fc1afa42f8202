#include <utility>

#include "cli/command.h"
#include "cli/engine.h"
#include "cli/family_options.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

struct InferArguments {
  std::string run, checkpoint;
  FamilyOptions own{commands_of_families([](const auto& family) { return &family.infer; })};
  std::vector<std::string> words;
  bool json = false, stats = false;
};

int run_infer(const InferArguments& options) {
  require_one_process("stretto infer",
                      "`stretto eval RUN --processes N` shares out data that are to be scored, "
                      "and has options that write the outputs to files");
  auto [overrides, files] = words_of_lines(options.words);
  options.own.check_values();
  auto loaded =
      load_run_config(options.run, overrides, Reads::kAnyData, &experiment::FamilySpec::infer);
  options.own.require_own(loaded.options);
  if (const auto keys = options.own.stated_keys(loaded.options.task.name()); !keys.empty()) {
    overrides.insert(overrides.begin(), keys.begin(), keys.end());
    loaded =
        load_run_config(options.run, overrides, Reads::kAnyData, &experiment::FamilySpec::infer);
  }
  auto own = options.own.values(loaded.options);
  const engine::InferRequest request{.experiment = std::move(loaded),
                                     .run_directory = options.run,
                                     .checkpoints = options.checkpoint,
                                     .files = std::move(files),
                                     .json = options.json,
                                     .stats = options.stats,
                                     .own = std::move(own)};
  tell_notes(request.experiment.origins);
  return engine().infer(request);
}

}  // namespace

std::function<int()> declare_infer(CLI::App& app) {
  auto options = std::make_shared<InferArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("FILE-or-key=value", options->words,
                 "lines, plain, .gz, .zst or FILE.zip:MEMBER, or other files that the task "
                 "reads; default stdin, which is - too; and key=value")
      ->type_name("");
  app.add_option(
         "--checkpoint", options->checkpoint,
         "best, last, a step, a name, a path, or several with commas: an ensemble, of tasks "
         "that have one")
      ->type_name("NAME");
  options->own.declare(app);
  app.add_flag("--json", options->json, "one JSON object a line");
  app.add_flag("--stats", options->stats,
               "say at the end how many lines, batches and, of text, tokens there were");
  return [options] { return run_infer(*options); };
}

}  // namespace stretto::cli
