#include <torch/torch.h>

#include "dist/make_group.h"
#include "experiment/training_text.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "tasks/commands.h"
#include "tasks/session.h"
#include "train/average.h"
#include "train/origin.h"

namespace stretto::tasks {
namespace {

using experiment::CheckRequest;
using experiment::Preflight;
using experiment::Stage;

// As run_train() asks for them: one process, since who starts several is not known here.
void check_machine(const experiment::Experiment& experiment, Preflight& found) {
  experiment::note_stop(found, Stage::kMachine, "dist.backend", [&] {
    dist::choose_backend(experiment.dist, dist::Launch{}, device_kind(experiment));
  });
  experiment::note_stop(found, Stage::kMachine, "run.device", [&] { prepare_process(experiment); });
}

// A model without memory has the names and shapes of the real one.
void check_weights(const CheckRequest& request, Preflight& found) {
  const auto& e = request.experiment.options;
  const std::string key = "train.init_from";
  experiment::note_stop(found, Stage::kWeights, key, [&] {
    std::map<std::string, std::string> hashes;
    int64_t src_ids = e.tokenizer.vocab_size, tgt_ids = src_ids;  // of one that is to be trained
    if (text::names_tokenizer(e.tokenizer)) {
      const auto tokenizers = experiment::make_experiment_tokenizers(e);
      src_ids = tokenizers.src->size();
      tgt_ids = tokenizers.tgt->size();
      hashes = train::tokenizer_hashes(tokenizers.assets);
    }
    const auto model = models::make_model(e.model, model_setup(e, src_ids, tgt_ids, at::kMeta),
                                          losses::make_loss(e.loss));
    optim::Arena arena(*model);
    if (request.full) return train::initialise_from(e.train.init_from, arena, hashes);
    train::require_weights_fit(e.train.init_from, arena);
    found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
  });
}

}  // namespace

Preflight run_check(const CheckRequest& request) {
  Preflight found;
  if (request.machine) check_machine(request.experiment.options, found);
  if (request.weights) check_weights(request, found);
  return found;
}

}  // namespace stretto::tasks
