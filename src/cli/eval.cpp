#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

struct Options {
  std::string run, checkpoint, src, tgt, hypotheses;
  std::vector<std::string> overrides;
  bool json = false;
};

int run(const Options& options) {
  if (options.src.empty() != options.tgt.empty()) {
    throw Error(ExitCode::kUsage, "stretto eval: --src and --tgt go together",
                "give a source file and its translation, line for line");
  }
  for (const auto& path : {options.src, options.tgt}) {
    if (!path.empty() && !std::filesystem::exists(path.substr(0, path.find(".zip:")))) {
      if (path.find(".zip:") != std::string::npos) continue;  // its reader names the archive
      throw Error(ExitCode::kUsage, "no file " + path, "check --src and --tgt");
    }
  }
  const experiment::EvalRequest request{.experiment = load_run(options.run, options.overrides),
                                        .run_directory = options.run,
                                        .checkpoint = options.checkpoint,
                                        .src = options.src,
                                        .tgt = options.tgt,
                                        .hypotheses = options.hypotheses,
                                        .json = options.json};
  return engine().eval(request);
}

}  // namespace

std::function<int()> declare_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("key=value", options->overrides, "for instance decode.beam_size=8")->type_name("");
  app.add_option("--checkpoint", options->checkpoint,
                 "best, last, a step, a name, or several with commas: an ensemble; default best")
      ->type_name("NAME");
  app.add_option("--src", options->src, "source text; default data.test_src, else data.valid_src")
      ->type_name("FILE");
  app.add_option("--tgt", options->tgt, "its translation, line for line")->type_name("FILE");
  app.add_option("--hypotheses", options->hypotheses, "write the translations to this file")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
