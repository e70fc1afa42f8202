#pragma once

#include "experiment/task_rules.h"

namespace stretto::experiment {

/// What `check` asks of an experiment with `task.name = "question_answering"`.
const TaskRules& question_answering_rules();

}  // namespace stretto::experiment
