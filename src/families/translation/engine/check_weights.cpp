#include <chrono>

#include "families/translation/engine/commands.h"
#include "families/translation/engine/initial_run.h"
#include "families/translation/engine/translation.h"
#include "families/translation/translation_options.h"
#include "families/translation/translation_preflight.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "runs/merged_lora.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

// As for a tokenizer that the configuration names; libtorch took its part of the second.
void check_text(const experiment::CheckRequest& request, const text::TokenizerPair& tokenizers,
                experiment::Preflight& found) {
  constexpr std::chrono::milliseconds kLimit{300};
  const auto end = std::chrono::steady_clock::now() + kLimit;
  const auto still_time = [&] { return request.full || std::chrono::steady_clock::now() < end; };
  experiment::look_at_tokens(request.experiment.options, tokenizers, still_time, found);
}

/// Tables of which each row is looked up, before anybody knows where.
std::vector<runs::MatchedTable> tables_of_any_size(const models::Seq2SeqModel& model) {
  std::vector<runs::MatchedTable> tables;
  for (const auto& table : model.vocabulary_tables()) tables.push_back({table.parameter, {}});
  return tables;
}

}  // namespace

// As training begins; a model without memory has the names and shapes of the real one.
void check_translation_weights(const experiment::CheckRequest& request,
                               experiment::Preflight& found) {
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
    // To train a tokenizer takes longer than a check may.
    const bool known = request.full || !match || text::names_tokenizer(translation_of(e).tokenizer);
    text::TokenizerPair tokenizers;
    int64_t src_ids = translation_of(e).tokenizer.vocab_size, tgt_ids = src_ids;
    if (known) {
      tokenizers = first_tokenizers(request.experiment, run);
      src_ids = tokenizers.src->size();
      tgt_ids = tokenizers.tgt->size();
      if (request.text) check_text(request, tokenizers, found);
    }
    const auto model =
        models::make_model(translation_of(e).model, model_setup(e, src_ids, tgt_ids, at::kMeta),
                           losses::make_loss(translation_of(e).loss));
    std::vector<runs::MatchedTable> tables;
    if (match)
      tables = known ? matched_tables(run, tokenizers, *model) : tables_of_any_size(*model);
    const optim::Arena arena(*model, optim::Arena::Gradients::kNone);
    const std::string where = run.weights_file();
    const auto weights = runs::weights_to_begin_with(run.checkpoint.file("model"), where, arena,
                                                     runs::LoraValues::kNames);
    const auto& file = weights.file;
    if (e.train.init_only.empty()) {
      runs::require_weights_fit(file, where, arena, tables);
    } else {
      theirs.explain_misfit(e, [&] {
        runs::require_some_weights_fit(file, where, arena,
                                       {.entries = e.train.init_only, .tied = model->tied_names()},
                                       tables);
      });
    }
    if (request.full) return;
    found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
  });
}

}  // namespace stretto::tasks
