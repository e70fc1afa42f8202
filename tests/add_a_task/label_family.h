#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Labels of lines of text: what `stretto train`, `eval` and `infer` do with them.
const Family& label_family();

}  // namespace stretto::tasks
