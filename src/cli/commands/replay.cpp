#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct ReplayArguments {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
};

int run_replay(const ReplayArguments& options) {
  if (!fs::is_regular_file(options.file)) {
    throw Error(ExitCode::kUsage, "no report " + options.file,
                "training writes them to RUN/forensics/step_….json");
  }
  // RUN/forensics/step_….json
  const fs::path run = fs::absolute(options.file).lexically_normal().parent_path().parent_path();
  std::vector<ForeignPath> left_out;
  const engine::ReplayRequest request{
      .experiment =
          load_run_config(run, options.overrides, Reads::kOwnData, KeepPaths::kData, left_out),
      .run_directory = run.string(),
      .file = options.file,
      .json = options.json};
  tell_notes(request.experiment.origins);
  tell_of_foreign_cache(left_out);
  return engine().replay(request);
}

}  // namespace

std::function<int()> declare_replay(CLI::App& app) {
  auto options = std::make_shared<ReplayArguments>();
  app.add_option("FILE", options->file, "report of a non-finite update, RUN/forensics/step_….json")
      ->required()
      ->type_name("");
  app.add_option("key=value", options->overrides, "for instance run.device=cpu")->type_name("");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run_replay(*options); };
}

}  // namespace stretto::cli
