#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// Parallel text, its tokenizers, an encoder-decoder, and search.
const TaskRules& translation_rules();

}  // namespace stretto::experiment
