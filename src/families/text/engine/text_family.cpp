#include "families/text/engine/text_family.h"

#include <chrono>
#include <utility>

#include "families/text/text_rules.h"
#include "families/text/text_sections.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/initial_weights.h"
#include "runs/merged_lora.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

// As for a tokenizer that the configuration names; libtorch took its part of the second.
void look_at_unknown_tokens(const experiment::CheckRequest& request,
                            const text::Tokenizer& tokenizer, experiment::Preflight& found) {
  const experiment::PreflightOptions how{.limit = std::chrono::milliseconds(300),
                                         .full = request.full};
  const auto& e = request.experiment.options;
  experiment::text_rules_of(e).look_at_unknown(e, {}, tokenizer, experiment::PreflightTimer(how),
                                               found);
}

}  // namespace

Assets TextFamily::first_assets(const experiment::LoadedExperiment& experiment) const {
  require_trainable(experiment.options);
  const auto lines = training_text(experiment.options);
  auto made = first_tokenizer(experiment, *lines);
  experiment::text_rules_of(experiment.options)
      .require_tokenizer(experiment.options, *made.tokenizer);
  return std::move(made.assets);
}

std::unique_ptr<text::LineSource> TextFamily::training_text(
    const experiment::Experiment& experiment) const {
  return experiment::text_rules_of(experiment).training_text(experiment);
}

std::string TextFamily::memory_advice(MemoryUse use) const {
  if (use != MemoryUse::kTrain) return "lower eval.max_tokens, to 256, say";
  return "halve data.max_tokens and double train.update_freq: the batch of an update stays the "
         "same; where validation was at work, lower eval.max_tokens, to 256, say";
}

std::vector<optim::TensorName> TextFamily::tensor_names(
    const experiment::Experiment& experiment) const {
  constexpr int64_t kAnyIds = 8;  // no name depends on the vocabulary
  const PlannedModel model = planned_model(experiment, kAnyIds);
  auto names = optim::names_of(optim::Arena(*model.module, optim::Arena::Gradients::kNone));
  optim::add_tied_names(model.tied, names);
  return names;
}

// As training begins; a model without memory has the names and shapes of the real one.
void TextFamily::check_weights(const experiment::CheckRequest& request,
                               experiment::Preflight& found) const {
  const auto& e = request.experiment.options;
  const std::string key = "train.init_from";
  experiment::note_stop(found, experiment::Stage::kWeights, key, [&] {
    const auto run =
        open_initial_run(e, request.full ? runs::Reading::kAll : runs::Reading::kHeads);
    const InitialModel theirs(run);
    // A model that means something else by the weights may have other shapes, too.
    experiment::note_stop(found, experiment::Stage::kWeights, key,
                          [&] { theirs.require_alike(e); });
    const bool match = e.train.init_vocabulary == "match";
    if (match) require_pieces(run);
    const auto& options = *experiment::text_sections(e).tokenizer;
    // To train a tokenizer takes longer than a check may.
    const bool known = request.full || !match || !options.model.empty();
    int64_t num_ids = options.vocab_size;
    RunTokenizer tokenizer;
    if (known) {
      const auto lines = experiment::text_rules_of(e).training_text(e);
      tokenizer = first_tokenizer(request.experiment, run, *lines);
      experiment::text_rules_of(e).require_tokenizer(e, *tokenizer.tokenizer);
      num_ids = tokenizer.tokenizer->size();
      if (request.text) look_at_unknown_tokens(request, *tokenizer.tokenizer, found);
    }
    const PlannedModel model = planned_model(e, num_ids);
    std::vector<runs::MatchedTable> tables;
    for (const auto& table : model.tables) {
      if (!match) break;
      std::vector<int64_t> rows;
      if (known) {
        const auto before = text::load_tokenizers({}, run.tokenizer);
        rows = text::match_pieces(*tokenizer.tokenizer, *before.src);
      }
      tables.push_back({table.parameter, std::move(rows)});
    }
    const optim::Arena arena(*model.module, optim::Arena::Gradients::kNone);
    const std::string where = run.weights_file();
    const auto weights = runs::weights_to_begin_with(run.checkpoint.file("model"), where, arena,
                                                     runs::LoraValues::kNames);
    const runs::TakenWeights taken{.entries = e.train.init_only,
                                   .tied = model.tied,
                                   .replaceable = replaceable_parts(),
                                   .replaces_all = theirs.has_another_head(e)};
    theirs.explain_misfit(
        e, [&] { runs::require_some_weights_fit(weights.file, where, arena, taken, tables); });
    if (request.full) return;
    found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
  });
}

}  // namespace stretto::tasks
