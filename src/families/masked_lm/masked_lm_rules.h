#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "masked_lm"`.
const TaskRules& masked_lm_rules();

}  // namespace stretto::experiment
