#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/labels.h"
#include "experiment/experiment.h"
#include "models/speech/speech_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"
#include "text/tokenizer.h"

/// Models of experiments and of run folders.
namespace stretto::tasks {

/// The name under which a run keeps the names of its labels, with loss.name = "label".
inline constexpr const char* kSpeechLabelsAsset = "labels.json";

/// What the outputs of a model stand for: tokens of a text, or labels of an utterance.
struct SpeechUnits {
  std::shared_ptr<const text::Tokenizer> tokenizer;  ///< null: there are labels
  std::optional<data::Labels> labels;

  int64_t size() const { return tokenizer ? tokenizer->size() : labels->size(); }
  models::SpeechTarget target() const {
    return tokenizer ? models::SpeechTarget::kTokens : models::SpeechTarget::kLabel;
  }
};

/// Those of a run. Throws Error(kUsage) where a file is missing, and Error(kBadData) where it is
/// broken.
SpeechUnits units_of(const experiment::Experiment& experiment, const Assets& assets);
/// The network of an experiment, for so many tokens or labels.
std::shared_ptr<models::SpeechModel> make_speech_network(const experiment::Experiment& experiment,
                                                         int64_t num_units, at::Device device,
                                                         FirstWeights weights);

/// A run that evaluates and infers: one model, or several whose probabilities are averaged.
struct SpeechRun {
  SpeechUnits units;
  std::vector<std::shared_ptr<models::SpeechModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};
/// Throws as load_checkpoints() and units_of() do, and Error(kUsage) for an ensemble of models that
/// give another number of rows.
SpeechRun load_speech_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                          const std::string& checkpoints, at::Device device);

}  // namespace stretto::tasks
