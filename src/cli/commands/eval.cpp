#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "distributed/launch.h"
#include "experiment/heads.h"

namespace stretto::cli {
namespace {

struct EvalArguments {
  std::string run, checkpoint, head, src, src2, tgt, hypotheses, per_line;
  std::vector<std::string> overrides;
  bool json = false;
  int processes = 0;  // 0: not asked for
};

std::vector<std::string> eval_words(const EvalArguments& options) {
  std::vector<std::string> words{"eval", options.run};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--checkpoint", options.checkpoint);
  add("--head", options.head);
  add("--src", options.src);
  add("--src2", options.src2);
  add("--tgt", options.tgt);
  add("--hypotheses", options.hypotheses);
  add("--per-line", options.per_line);
  if (options.json) words.push_back("--json");
  return words;
}

// Hours of decoding later it would be too late to say so.
void require_folder_of(const std::filesystem::path& output, const std::string& option) {
  const auto folder = output.parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw Error(ExitCode::kIo, "cannot write " + output.string() + ": no folder " + folder.string(),
              "make it, or give another file to " + option);
}

int run_eval(const EvalArguments& options) {
  if (options.src.empty() != options.tgt.empty()) {
    throw Error(ExitCode::kUsage, "stretto eval: --src and --tgt go together",
                "give a source file and its translation, line for line");
  }
  for (const auto& path : {options.src, options.src2, options.tgt}) {
    if (!path.empty() && !std::filesystem::exists(path.substr(0, path.find(".zip:")))) {
      if (path.find(".zip:") != std::string::npos) continue;  // its reader names the archive
      throw Error(ExitCode::kUsage, "no file " + path, "check --src, --src2 and --tgt");
    }
  }
  require_folder_of(options.hypotheses, "--hypotheses");
  require_folder_of(options.per_line, "--per-line");
  const engine::EvalRequest request{.experiment = load_run_config(options.run, options.overrides),
                                    .run_directory = options.run,
                                    .checkpoint = options.checkpoint,
                                    .json = options.json,
                                    .translation = {.src = options.src,
                                                    .tgt = options.tgt,
                                                    .hypotheses = options.hypotheses,
                                                    .per_line = options.per_line,
                                                    .src2 = options.src2,
                                                    .head = options.head}};
  if (!options.head.empty()) {
    experiment::head_named(request.experiment.options, options.head, "--head");
  }
  if (options.processes > 1) {
    return launch({.words = eval_words(options),
                   .processes = options.processes,
                   .dist = request.experiment.options.dist});
  }
  const int rank = distributed::detect_launch().rank;
  speak_as(rank, /*quiet=*/false);
  if (rank == 0) tell_notes(request.experiment.origins);
  return engine().eval(request);
}

}  // namespace

std::function<int()> declare_eval(CLI::App& app) {
  auto options = std::make_shared<EvalArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("key=value", options->overrides, "for instance decode.beam_size=8")->type_name("");
  app.add_option(
         "--checkpoint", options->checkpoint,
         "best, last, a step, a name, a path, or several with commas: an ensemble; default best")
      ->type_name("NAME");
  app.add_option("--head", options->head,
                 "of several decoders (model.heads) the only one to evaluate; default all")
      ->type_name("NAME");
  app.add_option("--src", options->src, "source text; default data.test_src, else data.valid_src")
      ->type_name("FILE");
  app.add_option("--src2", options->src2, "second source beside --src, of a run that reads two")
      ->type_name("FILE");
  app.add_option("--tgt", options->tgt, "its translation, line for line")->type_name("FILE");
  app.add_option("--hypotheses", options->hypotheses,
                 "write the translations to this file, line for line; decodes even where eval.bleu "
                 "is false")
      ->type_name("FILE");
  app.add_option("--per-line", options->per_line,
                 "write the pairs' log-probabilities to this file, a line a pair: sum, mean, "
                 "target tokens")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  app.add_option("--processes", options->processes,
                 "cut the text over so many processes on this machine, started with mpirun")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  return [options] { return run_eval(*options); };
}

}  // namespace stretto::cli
