#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "text_classification"`.
const TaskRules& text_classification_rules();

}  // namespace stretto::experiment
