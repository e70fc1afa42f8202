#include "families/text/engine/run_tokenizer.h"

#include <utility>

#include "data/tokenizer_store.h"
#include "experiment/task_rules.h"
#include "families/text/engine/text_teacher.h"
#include "families/text/text_rules.h"
#include "families/text/text_sections.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/load_checkpoints.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

text::TokenizerOptions tokenizer_options(const experiment::Experiment& experiment) {
  return experiment::text_sections(experiment).tokenizer->tokenizer_options();
}

RunTokenizer one_of_both(text::TokenizerPair pair) {
  return {std::move(pair.src), std::move(pair.assets)};
}

// Named, or trained. The text has one side.
RunTokenizer own_tokenizer(const experiment::Experiment& experiment,
                           text::LineSource& training_text) {
  return one_of_both(data::open_tokenizers(
      tokenizer_options(experiment), static_cast<uint64_t>(experiment.run.seed), &training_text,
      experiment::text_sections(experiment).cache_dir));
}

// Of a student that names none.
RunTokenizer tokenizer_of_teacher(const experiment::LoadedExperiment& loaded) {
  const auto& student = loaded.options;
  const auto directory = experiment::find_task_rules(student)->teacher_run(student);
  const auto teacher = experiment_of_text_teacher(directory, student);
  auto taken = load_tokenizer(teacher, assets_of(runs::RunFolder::open(directory)));
  tell_taken_tokenizer(loaded, directory + ", the teacher");
  return taken;
}

}  // namespace

RunTokenizer first_tokenizer(const experiment::LoadedExperiment& loaded,
                             text::LineSource& training_text) {
  const auto& train = loaded.options.train;
  if (train.init_from.empty()) {
    return experiment::takes_tokenizer_of_other_run(loaded.options)
               ? tokenizer_of_teacher(loaded)
               : own_tokenizer(loaded.options, training_text);
  }
  // Weights are verified where they are loaded; to take a tokenizer along they must be, too.
  const bool match = train.init_vocabulary == "match";
  return first_tokenizer(
      loaded, open_initial_run(loaded.options, match ? runs::Reading::kHeads : runs::Reading::kAll),
      training_text);
}

RunTokenizer first_tokenizer(const experiment::LoadedExperiment& loaded,
                             const runs::InitialRun& run, text::LineSource& training_text) {
  if (loaded.options.train.init_vocabulary == "match") {
    require_pieces(run);
    return own_tokenizer(loaded.options, training_text);
  }
  if (experiment::takes_tokenizer_of_other_run(loaded.options)) {
    return one_of_both(taken_tokenizers(loaded, run, tokenizer_options(loaded.options)));
  }
  auto own = own_tokenizer(loaded.options, training_text);
  runs::require_tokenizer_of(run, runs::tokenizer_hashes(own.assets));
  return own;
}

RunTokenizer load_tokenizer(const experiment::Experiment& experiment, const Assets& assets) {
  auto loaded = one_of_both(data::open_tokenizers(tokenizer_options(experiment), assets));
  loaded.tokenizer = experiment::text_rules_of(experiment)
                         .tokenizer_of_model(experiment, std::move(loaded.tokenizer));
  return loaded;
}

}  // namespace stretto::tasks
