#pragma once

#include "experiment/task_rules.h"

namespace stretto::tasks {

/// What `check` asks of labelled lines. No libtorch.
const experiment::TaskRules& label_rules();

/// Of a micro-batch, at most.
int64_t lines_of_batch(const experiment::Experiment& experiment);

}  // namespace stretto::tasks
