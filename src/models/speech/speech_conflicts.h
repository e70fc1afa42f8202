#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/option_conflicts.h"
#include "models/speech/speech_model_options.h"

namespace stretto::models {

/// What keeps a model of speech from being built: sizes that are missing, blocks that do not fit.
/// Empty for a sound model. No libtorch.
/// @param num_features  of a frame; 0 = not known yet
std::vector<OptionConflict> option_conflicts(const SpeechModelOptions& model,
                                             int64_t num_features = 0);

}  // namespace stretto::models
