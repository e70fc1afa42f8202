#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Machine translation, for the registry.
const Family& translation_family();

}  // namespace stretto::tasks
