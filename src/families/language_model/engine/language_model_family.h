#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Language models, `task.name = "language_model"`.
const Family& language_model_family();

}  // namespace stretto::tasks
