#pragma once

#include "experiment/command_option.h"

namespace stretto::experiment {

/// What translation alone has of `stretto eval` and `stretto infer`: tasks::TranslationEvalFiles
/// and tasks::TranslationInferFiles.
FamilyCommand translation_eval();
FamilyCommand translation_infer();

}  // namespace stretto::experiment
