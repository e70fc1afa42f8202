#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Question answering, for the registry.
const Family& question_answering_family();

}  // namespace stretto::tasks
