#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Masked language models, `task.name = "masked_lm"`.
const Family& masked_lm_family();

}  // namespace stretto::tasks
