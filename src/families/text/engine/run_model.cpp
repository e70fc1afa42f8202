#include "families/text/engine/run_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "families/text/encoder_rules.h"
#include "families/text/encoder_sections.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "store/manifest.h"
#include "tasks/checkpoint_experiment.h"
#include "text/encoded_text.h"

namespace stretto::tasks {

models::TextModelSetup text_model_setup(const experiment::Experiment& experiment, int64_t num_ids,
                                        const TextHead& head, at::Device device) {
  const auto sections = experiment::encoder_sections(experiment);
  models::TextModelSetup setup;
  setup.model = *sections.model;
  setup.rows = text::table_rows(num_ids, sections.tokenizer->vocab_multiple);
  setup.num_ids = num_ids;
  setup.head = head.kind;
  setup.num_labels = head.num_labels;
  setup.label_smoothing = head.label_smoothing;
  setup.seed = static_cast<uint64_t>(experiment.run.seed);
  setup.device = device;
  return setup;
}

std::shared_ptr<models::TextModel> make_run_model(const experiment::Experiment& experiment,
                                                  const text::Tokenizer& tokenizer,
                                                  const TextHead& head, at::Device device,
                                                  FirstWeights weights) {
  require_segments(experiment, tokenizer);
  auto setup = text_model_setup(experiment, tokenizer.size(), head, device);
  setup.pad = tokenizer.specials().pad;
  setup.draws_weights = weights == FirstWeights::kDrawn;
  return models::make_text_model(setup);
}

void require_segments(const experiment::Experiment& experiment, const text::Tokenizer& tokenizer) {
  const int64_t vectors = experiment::encoder_sections(experiment).model->num_segments;
  const auto sequences = text::template_of(tokenizer);
  const bool pairs = experiment::encoder_rules_of(experiment).reads_pairs(experiment);
  int64_t segments = 1;
  for (const auto& slot : pairs ? sequences.pair : sequences.single) {
    segments = std::max(segments, slot.segment + 1);
  }
  if (vectors == 0 || vectors >= segments) return;
  throw Error(
      ExitCode::kUsage,
      std::string("model.num_segments: the tokenizer's template for ") +
          (pairs ? "two texts" : "a text") + " has " + counted(segments, "segment") +
          ", and the model has vectors for " + std::to_string(vectors),
      "set model.num_segments = " + std::to_string(segments) +
          ", or 0 for none; a tokenizer.json says in post_processor which token is of which "
          "segment");
}

void require_head(const experiment::Experiment& experiment) {
  if (experiment::encoder_sections(experiment).model->head != "none") return;
  throw Error(ExitCode::kUsage,
              "model.head: the model is an encoder without a head, and " + experiment.task.name() +
                  " needs one",
              "train one: name this run as train.init_from of a configuration with model.head = "
              "\"auto\"; `stretto embed` works without a head");
}

std::string LoadedTextRun::checkpoint_names(const runs::RunFolder& folder) const {
  std::vector<std::string> names;
  for (const auto& path : checkpoints) names.push_back(name_of(path, folder));
  return join(names, ",");
}

std::string LoadedTextRun::checkpoint_hash() const {
  std::string manifests;  // each has the hash of every file of its checkpoint
  for (const auto& path : checkpoints) manifests += read_file(path / store::kManifestName);
  return hex64(xxh3_64(manifests));
}

LoadedTextRun load_text_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                            const std::string& checkpoints, const HeadOfRun& head,
                            at::Device device) {
  LoadedTextRun run;
  run.assets = folder.read_assets();
  if (run.assets.empty()) {
    throw Error(ExitCode::kUsage, folder.directory().string() + " has no tokenizer yet",
                "training never came so far; run `stretto train` first");
  }
  run.tokenizer = load_tokenizer(experiment, run.assets);
  const auto hashes = runs::tokenizer_hashes(run.assets);
  for (const auto& checkpoint : runs::open_checkpoints(folder.directory(), checkpoints)) {
    const auto described = checkpoint_experiment(checkpoint, folder, experiment);
    require_head(described);
    runs::require_same_tokenizer(checkpoint, hashes, folder.directory() / "tokenizer");
    auto model = make_run_model(described, *run.tokenizer.tokenizer, head(described, run.assets),
                                device, FirstWeights::kUnset);
    runs::load_weights(checkpoint, *model);
    model->eval();
    run.models.push_back(std::move(model));
    run.checkpoints.push_back(checkpoint.directory);
  }
  return run;
}

}  // namespace stretto::tasks
