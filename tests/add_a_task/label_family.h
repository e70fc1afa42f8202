#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Labels of lines of text, for the registry.
const Family& label_family();

}  // namespace stretto::tasks
