#pragma once

#include "experiment/command_option.h"

namespace stretto::experiment {

/// `stretto infer` of language models: tasks::GenerationArguments.
FamilyCommand generation_command();

}  // namespace stretto::experiment
