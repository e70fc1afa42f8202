#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "families/language_model/language_model_options.h"
#include "families/text/engine/run_tokenizer.h"
#include "models/causal_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"

/// Language models of experiments and of runs.
namespace stretto::tasks {

/// The sections of a language model. Throws std::bad_variant_access for another family.
const experiment::LanguageModelOptions& language_model_of(const experiment::Experiment& experiment);

/// Whether `decode.text_begin` leaves to the tokenizer what stands in front of a text.
bool begins_as_tokenizer(const experiment::LanguageModelOptions& options);
/// What stands in front of a text that is continued: the separator, as in training, or what the
/// tokenizer's file puts there, perhaps nothing.
std::vector<int64_t> tokens_before_text(const experiment::LanguageModelOptions& options,
                                        const text::Tokenizer& tokenizer);
/// From which token the first one of a text is predicted: the last of these, else the separator.
int64_t text_begin_of(const experiment::LanguageModelOptions& options,
                      const text::Tokenizer& tokenizer);

/// What the model of an experiment is made from, for a tokenizer with so many ids.
models::CausalModelSetup causal_model_setup(const experiment::Experiment& experiment,
                                            int64_t num_ids, const text::SpecialIds& specials,
                                            at::Device device);

/// The network that an experiment describes, with its loss. Throws Error(kUsage) where its parts do
/// not fit together.
std::shared_ptr<models::CausalModel> make_language_model(
    const experiment::Experiment& experiment, const text::Tokenizer& tokenizer, at::Device device,
    FirstWeights weights = FirstWeights::kDrawn);

/// Models of a run for reading: its tokenizer, its other files, and one network for each
/// checkpoint, which may be another run's (tasks/checkpoint_experiment.h).
struct LoadedLanguageRun {
  RunTokenizer tokenizer;
  Assets assets;  ///< all of them
  std::vector<std::shared_ptr<models::CausalModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};

/// As load_checkpoints() reads them, and throws.
LoadedLanguageRun load_language_run(const experiment::Experiment& experiment,
                                    const runs::RunFolder& folder, const std::string& checkpoints,
                                    at::Device device);

/// The same of one checkpoint. Throws Error(kUsage) for several too.
LoadedLanguageRun load_one_language_model(const experiment::Experiment& experiment,
                                          const runs::RunFolder& folder,
                                          const std::string& checkpoint, at::Device device);

}  // namespace stretto::tasks
