#pragma once

#include "experiment/experiment.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// The family that `task.name` names. Throws Error(kUsage) with the known names for another one.
const Family& family_of(const experiment::Experiment& experiment);

}  // namespace stretto::tasks
