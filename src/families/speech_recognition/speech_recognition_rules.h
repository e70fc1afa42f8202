#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "speech_recognition"`.
const TaskRules& speech_recognition_rules();

}  // namespace stretto::experiment
