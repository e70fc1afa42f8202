#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/family_options.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "data/byte_stream.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"

namespace stretto::cli {
namespace {

struct InferArguments {
  std::string run, checkpoint, head, prefix, src2;
  std::vector<std::string> words;
  int64_t nbest = 0, beam = 0;
  bool sample = false, json = false, scores = false, alignments = false, stats = false;
};

int run_infer(const CLI::App& app, const InferArguments& options) {
  require_one_process("stretto infer",
                      "a text that is to be scored is cut by `stretto eval RUN --processes N`, "
                      "which writes outputs to `--hypotheses FILE` or `--predictions FILE`");
  std::vector<std::string> overrides, files;
  for (const auto& word : options.words) (is_override(word) ? overrides : files).push_back(word);
  for (const auto& file : files) {
    if (file != "-" && !std::filesystem::exists(data::parse_input_path(file).file)) {
      throw Error(ExitCode::kUsage, "no file " + file, "without files, stdin is read");
    }
  }
  auto loaded = load_run_config(options.run, overrides, Reads::kAnyText);
  const auto known = family_options(app, &experiment::FamilySpec::infer_options);
  require_own_options(app, known, loaded.options);
  const bool translates = loaded.options.task.is<experiment::TranslationOptions>();
  if (const auto keys = stated_keys(app, known, loaded.options.task.name()); !keys.empty()) {
    overrides.insert(overrides.begin(), keys.begin(), keys.end());
    loaded = load_run_config(options.run, overrides, Reads::kAnyText);
  }
  const engine::InferRequest request{
      .experiment = std::move(loaded),
      .run_directory = options.run,
      .checkpoints = options.checkpoint,
      .files = std::move(files),
      .json = options.json,
      .translation = {.prefix_file = options.prefix,
                      .src2_file = options.src2,
                      .scores = options.scores,
                      .alignments = options.alignments,
                      .head = options.head,
                      .stats = options.stats},
      .masked_lm = {.nbest =
                        options.nbest > 0 ? options.nbest : tasks::MaskedLmInferArguments().nbest},
      .question_answering = {.scores = options.scores,
                             .nbest = std::max<int64_t>(1, options.nbest)},
      .text_classification = {.scores = options.scores}};
  if (translates) experiment::head_named(request.experiment.options, options.head, "--head");
  tell_notes(request.experiment.origins);
  return engine().infer(request);
}

}  // namespace

std::function<int()> declare_infer(CLI::App& app) {
  auto options = std::make_shared<InferArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("FILE-or-key=value", options->words,
                 "text, plain, .gz, .zst or FILE.zip:MEMBER; default stdin, which is - "
                 "too; and key=value")
      ->type_name("");
  app.add_option(
         "--checkpoint", options->checkpoint,
         "best, last, a step, a name, a path, or several with commas: an ensemble, of tasks "
         "that have one")
      ->type_name("NAME");
  app.add_option("--head", options->head,
                 "which of several decoders writes (model.heads); needed where there are several")
      ->type_name("NAME");
  app.add_option("--beam", options->beam, "decode.beam_size")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_option("--nbest", options->nbest,
                 "decode.nbest: hypotheses for each line, or answers for each question; or fillers "
                 "for each mask, 5 by default")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_flag("--sample", options->sample, "draw at random instead of searching");
  app.add_flag(
      "--scores", options->scores,
      "print score and text, separated by a tab; of labels their probabilities behind them");
  app.add_flag("--alignments", options->alignments, "print source-target pairs of positions too");
  app.add_option("--prefix", options->prefix, "text that each output starts with, line for line")
      ->type_name("FILE");
  app.add_option("--src2", options->src2,
                 "second source, line for line, of a run that reads two; default: behind a tab of "
                 "each line")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "one JSON object a line");
  app.add_flag("--stats", options->stats,
               "say at the end how many lines, batches and tokens there were");
  return [options, &app] { return run_infer(app, *options); };
}

}  // namespace stretto::cli
