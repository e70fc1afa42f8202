#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/seq2seq_model.h"
#include "runs/run_folder.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// Models of a run for reading: tokenizers from the run folder and one network for each checkpoint,
/// which may be another run's (tasks/checkpoint_experiment.h).
struct LoadedRun {
  text::TokenizerPair tokenizers;
  std::vector<std::shared_ptr<models::Seq2SeqModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};

/// As load_checkpoints() reads them, and throws.
LoadedRun load_translation_run(const experiment::Experiment& experiment,
                               const runs::RunFolder& folder, const std::string& checkpoints,
                               at::Device device);

/// The models with the decoder of this name alone; of runs with one decoder, with an empty name, as
/// they are. Throws Error(kBadData) where one of an ensemble has no such head.
std::vector<std::shared_ptr<models::Seq2SeqModel>> models_of_head(const LoadedRun& run,
                                                                  const std::string& head);

}  // namespace stretto::tasks
