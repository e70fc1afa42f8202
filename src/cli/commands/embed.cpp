#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/family_options.h"
#include "cli/input.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

struct EmbedArguments {
  std::string run, checkpoint;
  FamilyOptions own{commands_of_families([](const experiment::FamilySpec& family) {
    return family.embed ? &*family.embed : nullptr;
  })};
  std::vector<std::string> words;
  bool stats = false;
};

void require_encoder(const FamilyOptions& own, const experiment::Experiment& experiment,
                     const std::string& run) {
  if (own.has(experiment.task.name())) return;
  throw Error(ExitCode::kUsage,
              run + " is a run of " + experiment.task.name() +
                  ", whose model gives no vectors of whole lines",
              "name a run of one of " + join(own.families(), ", ") + ", trained or imported");
}

int run_embed(const EmbedArguments& options) {
  require_one_process("stretto embed");
  auto [overrides, files] = words_of_lines(options.words);
  options.own.check_values();
  engine::EmbedRequest request{.experiment = load_run_config(options.run, overrides),
                               .run_directory = options.run,
                               .checkpoint = options.checkpoint,
                               .files = std::move(files),
                               .stats = options.stats};
  const auto& experiment = request.experiment.options;
  require_encoder(options.own, experiment, options.run);
  options.own.require_own(experiment);
  request.own = options.own.values(experiment);
  tell_notes(request.experiment.origins);
  return engine().embed(request);
}

}  // namespace

std::function<int()> declare_embed(CLI::App& app) {
  auto options = std::make_shared<EmbedArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("FILE-or-key=value", options->words,
                 "lines, plain, .gz, .zst or FILE.zip:MEMBER; default stdin, which is - too; and "
                 "key=value, run.threads=4 for instance")
      ->type_name("");
  app.add_option("--checkpoint", options->checkpoint, "best, last, a step, a name or a path")
      ->type_name("NAME");
  options->own.declare(app);
  app.add_flag("--stats", options->stats,
               "say at the end how many lines, batches and tokens there were");
  return [options] { return run_embed(*options); };
}

}  // namespace stretto::cli
