#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled/labels.h"
#include "experiment/experiment.h"
#include "experiment/load_experiment.h"
#include "models/synthesis/synthesis_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"
#include "text/tokenizer.h"

/// Models of experiments and of run folders.
namespace stretto::tasks {

/// The name under which a run keeps the names of its speakers.
inline constexpr const char* kSpeakersAsset = "speakers.json";

/// What a run has beside weights.
struct RunVoice {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<data::Labels> speakers;  ///< nothing: one
  int64_t num_speakers() const { return speakers ? speakers->size() : 1; }
};

/// The files of a new run: the tokenizer that the configuration names, else that of the run that
/// `train.init_from` names, else one that is trained on the texts; and its speakers, in the order
/// of that run where it has the same.
Assets first_voice(const experiment::LoadedExperiment& experiment);

/// From the files of a run folder. Throws as text::load_tokenizers() does, and Error(kUsage) where
/// the speakers are missing.
RunVoice voice_of(const experiment::Experiment& experiment, const Assets& assets);

/// What a model is built from.
/// @param num_symbols  of the tokenizer; @param pad  of it, -1 = none
models::SynthesisSetup synthesis_setup(const experiment::Experiment& experiment,
                                       int64_t num_symbols, int64_t pad, int64_t num_speakers,
                                       at::Device device, FirstWeights weights);
std::shared_ptr<models::SynthesisModel> make_synthesis_network(
    const experiment::Experiment& experiment, const RunVoice& voice, at::Device device,
    FirstWeights weights);

/// A run that evaluates and infers.
struct SynthesisRun {
  RunVoice voice;
  std::shared_ptr<models::SynthesisModel> model;
  std::vector<std::filesystem::path> checkpoints;
};
/// Throws as load_checkpoints() and voice_of() do, and Error(kUsage) for several checkpoints: the
/// frames of several models are no mean of sounds.
SynthesisRun load_synthesis_run(const experiment::Experiment& experiment,
                                const runs::RunFolder& folder, const std::string& checkpoints,
                                at::Device device);

}  // namespace stretto::tasks
