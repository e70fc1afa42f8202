#include "families/translation/engine/initial_run.h"

#include "experiment/task_rules.h"
#include "families/translation/engine/teacher.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "runs/provenance.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {

text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& loaded) {
  const auto& options = loaded.options;
  if (options.train.init_from.empty()) {
    const auto& own = translation_of(options);
    const bool takes_teachers = own.loss.has_teacher() && !text::names_tokenizer(own.tokenizer);
    return takes_teachers ? tokenizers_of_teacher(loaded)
                          : experiment::make_experiment_tokenizers(options);
  }
  // Weights are verified where they are loaded; to take a tokenizer along they must be, too.
  const bool match = options.train.init_vocabulary == "match";
  return first_tokenizers(
      loaded, open_initial_run(options, match ? runs::Reading::kHeads : runs::Reading::kAll));
}

text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& loaded,
                                     const runs::InitialRun& run) {
  const auto& options = loaded.options;
  if (options.train.init_vocabulary == "match") {
    require_pieces(run);
    return experiment::make_experiment_tokenizers(options);
  }
  if (experiment::takes_tokenizer_of_other_run(options)) {
    return taken_tokenizers(loaded, run, translation_of(options).tokenizer);
  }
  auto tokenizers = experiment::make_experiment_tokenizers(options);
  runs::require_tokenizer_of(run, runs::tokenizer_hashes(tokenizers.assets));
  return tokenizers;
}

std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run,
                                               const text::TokenizerPair& tokenizers,
                                               const models::Seq2SeqModel& model) {
  require_pieces(run);
  const auto before = text::load_tokenizers({}, run.tokenizer);
  const auto target = matched_rows(*tokenizers.tgt, *before.tgt, tokenizers.joint ? "" : "target ");
  const auto source = tokenizers.joint && before.joint
                          ? target
                          : matched_rows(*tokenizers.src, *before.src, "source ");
  std::vector<runs::MatchedTable> tables;
  const auto add = [&](const std::string& name, bool of_source) {
    const std::string side = of_source ? "source" : "target";
    tables.push_back({.parameter = name,
                      .rows = of_source ? source : target,
                      .vocabulary = before.joint ? "" : side});
  };
  for (const auto& table : model.vocabulary_tables()) add(table.parameter, table.of_source);
  // Which the other run may not tie: its encoder's table then has the source's pieces.
  for (const auto& tied : model.tied_names()) {
    add(tied.name, tied.name.starts_with("encoder.") || tied.name.starts_with("encoders."));
  }
  return tables;
}

}  // namespace stretto::tasks
