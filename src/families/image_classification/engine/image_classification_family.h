#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Classes of pictures.
const Family& image_classification_family();

}  // namespace stretto::tasks
