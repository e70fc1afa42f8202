#include "base/error.h"
#include "base/named_output.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/family_options.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "distributed/launch.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"

namespace stretto::cli {
namespace {

struct EvalArguments {
  std::string run, checkpoint, head, src, src2, tgt, hypotheses, per_line;
  std::string predictions, nbest, none_scores;
  std::vector<std::string> data;
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
  for (const auto& file : options.data) add("--data", file);
  add("--predictions", options.predictions);
  add("--nbest", options.nbest);
  add("--none-scores", options.none_scores);
  if (options.json) words.push_back("--json");
  return words;
}

void require_file(const std::string& path, const std::string& advice) {
  if (path.empty() || path.find(".zip:") != std::string::npos) return;  // its reader names those
  if (std::filesystem::exists(path)) return;
  throw Error(ExitCode::kUsage, "no file " + path, advice);
}

// A second file behind --data, say.
void require_keys(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    if (is_override(word)) continue;
    throw Error(ExitCode::kUsage, "stretto eval: unexpected `" + printable(word) + "`",
                "keys are section.key=value; each further file has a --data of its own");
  }
}

void require_files(const EvalArguments& options) {
  if (options.src.empty() != options.tgt.empty()) {
    throw Error(ExitCode::kUsage, "stretto eval: --src and --tgt go together",
                "give a source file and its translation, line for line");
  }
  for (const auto& path : {options.src, options.src2, options.tgt}) {
    require_file(path, "check --src, --src2 and --tgt");
  }
  for (const auto& path : options.data) require_file(path, "check --data");
  require_keys(options.overrides);
  require_output_place(options.hypotheses, "--hypotheses");
  require_output_place(options.per_line, "--per-line");
  require_output_place(options.predictions, "--predictions");
  require_output_place(options.nbest, "--nbest");
  require_output_place(options.none_scores, "--none-scores");
}

engine::EvalRequest request_of(const EvalArguments& options, std::vector<ForeignPath>& left_out) {
  return {.experiment = load_run_config(options.run, options.overrides, Reads::kAnyText,
                                        KeepPaths::kNone, left_out),
          .run_directory = options.run,
          .checkpoint = options.checkpoint,
          .data = options.data,
          .json = options.json,
          .translation = {.src = options.src,
                          .tgt = options.tgt,
                          .hypotheses = options.hypotheses,
                          .per_line = options.per_line,
                          .src2 = options.src2,
                          .head = options.head},
          .question_answering = {.predictions = options.predictions,
                                 .nbest = options.nbest,
                                 .none_scores = options.none_scores},
          .text_classification = {.predictions = options.predictions}};
}

int run_eval(const CLI::App& app, const EvalArguments& options) {
  require_files(options);
  std::vector<ForeignPath> left_out;
  const engine::EvalRequest request = request_of(options, left_out);
  require_own_options(app, family_options(app, &experiment::FamilySpec::eval_options),
                      request.experiment.options);
  if (options.src.empty() && options.data.empty()) {
    const bool translates = request.experiment.options.task.is<experiment::TranslationOptions>();
    require_own_text(left_out, request.experiment, options.run,
                     translates ? "--src FILE --tgt FILE" : "--data FILE");
  }
  if (!options.head.empty()) {
    experiment::head_named(request.experiment.options, options.head, "--head");
  }
  if (options.processes > 1) {
    return launch({.words = eval_words(options),
                   .processes = options.processes,
                   .dist = request.experiment.options.dist});
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
  app.add_option("--data", options->data,
                 "file to score, in the format of the run's data (data.text=…, data.format=… for "
                 "another); again for more files; default "
                 "data.test, else data.valid; not of translation")
      ->allow_extra_args(false)
      ->type_name("FILE");
  app.add_option("--predictions", options->predictions,
                 "write answers by id as JSON, or a line with label and probabilities for each "
                 "text, to this file")
      ->type_name("FILE");
  app.add_option("--nbest", options->nbest,
                 "write the candidates of each question to this file, as JSON")
      ->type_name("FILE");
  app.add_option("--none-scores", options->none_scores,
                 "write how much likelier no answer is, for each question, to this file")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  app.add_option("--processes", options->processes,
                 "cut the text over so many processes on this machine, started with mpirun")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  return [options, &app] { return run_eval(app, *options); };
}

}  // namespace stretto::cli
