#include "families/language_model/engine/language_run.h"

#include <utility>

#include "base/error.h"
#include "families/language_model/language_model_rules.h"
#include "losses/registry.h"
#include "tasks/load_checkpoints.h"
#include "text/tokenizer_options.h"

namespace stretto::tasks {

const experiment::LanguageModelOptions& language_model_of(
    const experiment::Experiment& experiment) {
  return experiment::language_model_sections(experiment);
}

bool begins_as_tokenizer(const experiment::LanguageModelOptions& options) {
  return options.decode.text_begin == "tokenizer";
}

std::vector<int64_t> tokens_before_text(const experiment::LanguageModelOptions& options,
                                        const text::Tokenizer& tokenizer) {
  if (begins_as_tokenizer(options)) return tokenizer.sequences().front();
  return {tokenizer.specials().eos};
}

int64_t text_begin_of(const experiment::LanguageModelOptions& options,
                      const text::Tokenizer& tokenizer) {
  const auto before = tokens_before_text(options, tokenizer);
  return before.empty() ? tokenizer.specials().eos : before.back();
}

models::CausalModelSetup causal_model_setup(const experiment::Experiment& experiment,
                                            int64_t num_ids, const text::SpecialIds& specials,
                                            at::Device device) {
  const auto& own = language_model_of(experiment);
  models::CausalModelSetup setup;
  setup.model = own.model;
  setup.rows = text::table_rows(num_ids, own.tokenizer.vocab_multiple);
  setup.num_ids = num_ids;
  setup.specials = specials;
  setup.seed = static_cast<uint64_t>(experiment.run.seed);
  setup.device = device;
  return setup;
}

std::shared_ptr<models::CausalModel> make_language_model(const experiment::Experiment& experiment,
                                                         const text::Tokenizer& tokenizer,
                                                         at::Device device, FirstWeights weights) {
  auto setup = causal_model_setup(experiment, tokenizer.size(), tokenizer.specials(), device);
  setup.draws_weights = weights == FirstWeights::kDrawn;
  return models::make_causal_model(
      setup, losses::make_next_token_loss(language_model_of(experiment).loss));
}

LoadedLanguageRun load_language_run(const experiment::Experiment& experiment,
                                    const runs::RunFolder& folder, const std::string& checkpoints,
                                    at::Device device) {
  LoadedLanguageRun run;
  run.assets = assets_of(folder);
  run.tokenizer = load_tokenizer(experiment, run.assets);
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    run.models.push_back(
        make_language_model(described, *run.tokenizer.tokenizer, device, FirstWeights::kUnset));
    return *run.models.back();
  };
  run.checkpoints = load_checkpoints(experiment, folder, checkpoints, run.assets, {.make = make});
  return run;
}

LoadedLanguageRun load_one_language_model(const experiment::Experiment& experiment,
                                          const runs::RunFolder& folder,
                                          const std::string& checkpoint, at::Device device) {
  auto run = load_language_run(experiment, folder, checkpoint, device);
  if (run.models.size() == 1) return run;
  throw Error(ExitCode::kUsage, "language models are evaluated one at a time",
              "give one checkpoint; `stretto average` makes one of several");
}

}  // namespace stretto::tasks
