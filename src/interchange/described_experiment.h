#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/load_experiment.h"
#include "interchange/architecture.h"

namespace stretto::interchange {

/// The experiment of a model: its task and `[model]`, and sections that fit it, without data.
/// @param max_tokens  longest text that the model was made for; 0 = as many as it has positions
experiment::Experiment described_experiment(const ModelDescription& description, bool byte_bpe,
                                            int64_t max_tokens);

/// Such an experiment as its run keeps it. Throws Error(kBadData) that names the config.json of
/// `folder` if a range or a rule refuses what it describes.
experiment::LoadedExperiment load_described(const experiment::Experiment& described,
                                            const std::filesystem::path& folder);

/// The head of the models that an experiment trains; kNone where they are no encoders of texts.
Head head_of(const experiment::Experiment& experiment);

/// The model of an experiment on encoded texts, for a tokenizer of so many ids.
/// @param labels  their names in their order, of a head of labels
ModelDescription describe(const experiment::Experiment& experiment, int64_t num_ids, int64_t pad_id,
                          const std::vector<std::string>& labels);

}  // namespace stretto::interchange
