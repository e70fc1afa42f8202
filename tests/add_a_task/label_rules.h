#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "labelling"`. No libtorch.
const TaskRules& label_rules();

}  // namespace stretto::experiment
