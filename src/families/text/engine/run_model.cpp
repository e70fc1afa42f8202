#include "families/text/engine/run_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "families/text/encoder_rules.h"
#include "families/text/encoder_sections.h"
#include "tasks/load_checkpoints.h"
#include "text/encoded_text.h"

namespace stretto::tasks {

models::TextModelSetup text_model_setup(const experiment::Experiment& experiment, int64_t num_ids,
                                        const TextHead& head, at::Device device) {
  const auto sections = experiment::encoder_sections(experiment);
  models::TextModelSetup setup;
  if (sections.causal != nullptr) {
    setup.causal = models::CausalTextOptions{.stack = models::causal_stack_of(*sections.causal),
                                             .pool = models::causal_pool_of(*sections.causal)};
  } else {
    setup.model = *sections.model;
  }
  setup.rows = text::table_rows(num_ids, sections.tokenizer->vocab_multiple);
  setup.num_ids = num_ids;
  setup.head = head.kind;
  setup.num_labels = head.num_labels;
  setup.label_smoothing = head.label_smoothing;
  setup.teacher = head.teacher;
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
  const int64_t vectors = experiment::encoder_sections(experiment).num_segments;
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
  if (experiment::encoder_sections(experiment).has_head) return;
  throw Error(ExitCode::kUsage,
              "model.head: the model is an encoder without a head, and " + experiment.task.name() +
                  " needs one",
              "train one: name this run as train.init_from of a configuration with model.head = "
              "\"auto\"; `stretto embed` works without a head");
}

LoadedTextRun load_text_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                            const std::string& checkpoints, const HeadOfRun& head,
                            at::Device device) {
  LoadedTextRun run;
  run.assets = assets_of(folder);
  run.tokenizer = load_tokenizer(experiment, run.assets);
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    run.models.push_back(make_run_model(described, *run.tokenizer.tokenizer,
                                        head(described, run.assets), device, FirstWeights::kUnset));
    return *run.models.back();
  };
  run.checkpoints = load_checkpoints(experiment, folder, checkpoints, run.assets,
                                     {.make = make, .check = &require_head});
  return run;
}

}  // namespace stretto::tasks
