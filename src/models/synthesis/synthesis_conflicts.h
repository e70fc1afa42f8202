#pragma once

#include <vector>

#include "models/option_conflicts.h"
#include "models/synthesis/synthesis_options.h"

namespace stretto::models {

/// What keeps a model of speech from being built: heads that do not divide the style's width, an
/// encoder of odd width, and the like. Empty for a sound model. No libtorch.
std::vector<OptionConflict> option_conflicts(const SynthesisModelOptions& model);

}  // namespace stretto::models
