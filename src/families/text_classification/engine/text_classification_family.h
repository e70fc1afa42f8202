#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Labels, or a value, of texts and pairs of texts.
const Family& text_classification_family();

}  // namespace stretto::tasks
