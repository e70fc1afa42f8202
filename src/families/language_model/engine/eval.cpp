#include <cmath>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "families/language_model/engine/commands.h"
#include "families/language_model/engine/language_run.h"
#include "families/language_model/engine/scored_text.h"
#include "families/language_model/language_model_display.h"
#include "families/language_model/requests.h"
#include "families/text/engine/eval_files.h"
#include "families/text/text_sections.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

/// What was evaluated, and by which rules.
struct Evaluated {
  std::string set, checkpoint;
  TextScore score;
  std::string context, counted;
  int64_t unknown = 0;  ///< tokens of the text that are `<unk>`
};

double value_of(const std::vector<train::Score>& scores, const char* name) {
  const auto* score = train::find_score(scores, name);
  return score == nullptr ? 0 : score->value;
}

void print_json(const Evaluated& evaluated) {
  nlohmann::ordered_json out{{"set", evaluated.set}, {"checkpoint", evaluated.checkpoint}};
  for (const auto& [name, value] : scores_of(evaluated.score)) out[name] = value;
  out["tokens"] = evaluated.score.tokens;
  out["bytes"] = evaluated.score.bytes;
  out["words"] = evaluated.score.words;
  out["unknown"] = evaluated.unknown;
  out["context"] = evaluated.context;
  out["counted"] = evaluated.counted;
  std::cout << out.dump() << std::endl;
}

std::string word_ppl_text(const std::vector<train::Score>& scores, const TextScore& score) {
  const auto* known = train::find_score(scores, score_key::kWordPpl);
  const std::string words = counted(score.words, "word");
  if (known == nullptr) return "no word ppl: the text has " + words;
  return "word ppl " + fixed(known->value, 2) + " (exp of the sum over " + words + ")";
}

void print_text(const Evaluated& evaluated) {
  const TextScore& score = evaluated.score;
  const auto scores = scores_of(score);
  std::cout << "nll " << fixed(value_of(scores, score_key::kNll), 4) << "  ppl "
            << fixed(value_of(scores, score_key::kPpl), 2) << " (exp of nll)  tokens "
            << with_thousands(score.tokens) << "\n"
            << "bits per byte " << fixed(value_of(scores, score_key::kBitsPerByte), 4) << " (of "
            << counted(score.bytes, "byte") << " of the text)  " << word_ppl_text(scores, score)
            << "\n"
            << "rules: " << evaluated.context << "; " << evaluated.counted << "; <unk> counted"
            << (evaluated.unknown == 0 ? "" : ", " + counted(evaluated.unknown, "token"))
            << std::endl;
}

/// What the first token of a text is predicted from.
std::string begin_words(const experiment::LanguageModelOptions& options,
                        const text::Tokenizer& tokenizer) {
  const int64_t begin = text_begin_of(options, tokenizer);
  return begin == tokenizer.specials().eos ? kSeparatorWords : printable(tokenizer.piece(begin));
}

/// Lines in step with those of the text: blank ones too, and none is left out.
data::DocumentInput lines_input(const experiment::Experiment& experiment, const EvalFiles& set) {
  auto data = language_model_of(experiment).data;
  data.keep_blank_lines = true;
  return data::input_of(data, set.paths, set.key, experiment::num_threads(experiment));
}

std::string per_line(models::CausalModel& model, const experiment::Experiment& experiment,
                     const text::Tokenizer& tokenizer, const EvalFiles& set,
                     const train::EvaluationSetup& setup) {
  const auto input = lines_input(experiment, set);
  const auto documents = data::open_documents(input, tokenizer);
  const auto sizes = data::sizes_of_documents(input);
  const auto& own = language_model_of(experiment);
  const auto scores = score_documents(model, own, *documents, setup, text_begin_of(own, tokenizer));
  if (documents->left_out().count > 0 || scores.size() != sizes.words_of_documents.size()) {
    throw Error(ExitCode::kBadData,
                "--per-line: some lines or documents of the text are left out, so that no line of "
                "the file would be theirs",
                "repair the text: " + documents->left_out().text());
  }
  std::string text;
  for (size_t i = 0; i < scores.size(); ++i) {
    text += fixed(scores[i].log_prob, 6) + "\t" + std::to_string(scores[i].tokens) + "\t" +
            std::to_string(sizes.words_of_documents[i]) + "\n";
  }
  return text;
}

}  // namespace

int evaluate_language_model(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  const auto& own = language_model_of(experiment);
  const auto& asked = request.own.as<LanguageModelEvalFiles>();
  const EvalFiles set = eval_files(asked.data, own.data.test, own.data.valid);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run = load_one_language_model(experiment, folder, request.checkpoint, context.device);
  const auto& group = context.group;
  Evaluated evaluated{.set = set.name,
                      .checkpoint = checkpoint_names(run.checkpoints, folder),
                      .score = {},
                      .context = context_words(own, begin_words(own, *run.tokenizer.tokenizer)),
                      .counted = count_words(own)};
  if (group.is_root()) log::info("checkpoint " + evaluated.checkpoint + ", " + set.name + " text");
  const auto& tokenizer = *run.tokenizer.tokenizer;
  const ScoredText text = open_scored_text(experiment, tokenizer, set.paths, set.key);
  if (group.is_root()) warn_of_left_out(text.documents->left_out());
  distributed::require_agreement(
      group, {{"checkpoint", evaluated.checkpoint + " " + checkpoint_hash(run.checkpoints)},
              {"text",
               hex64(text.documents->key()) + " of " + counted(text.documents->size(), "document")},
              {"--per-line", asked.per_line.empty() ? "no" : "yes"}});
  auto& model = *run.models.front();
  const train::EvaluationSetup setup{.device = context.device,
                                     .group = group,
                                     .loading = experiment::text_sections(experiment).loading};
  evaluated.score = score_text(model, own, text, set.name + " text", setup);
  evaluated.unknown = text.documents->counts().unknown;
  if (!std::isfinite(evaluated.score.nll)) {
    refuse_not_finite(set.name + " text", "its nll", request.run_directory);
  }
  if (!asked.per_line.empty()) {
    const std::string lines = per_line(model, experiment, tokenizer, set, setup);
    if (group.is_root()) write_named_output(asked.per_line, lines);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  request.json ? print_json(evaluated) : print_text(evaluated);
  return 0;
}

}  // namespace stretto::tasks
