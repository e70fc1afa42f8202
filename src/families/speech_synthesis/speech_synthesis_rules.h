#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "speech_synthesis"`.
const TaskRules& speech_synthesis_rules();

}  // namespace stretto::experiment
