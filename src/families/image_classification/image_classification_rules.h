#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "image_classification"`.
const TaskRules& image_classification_rules();

}  // namespace stretto::experiment
