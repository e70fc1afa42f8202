#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Labels of lines of text, for the registry. `data.train_src` and the like are the text, the files
/// of the target side have the label of each line.
const Family& label_family();

}  // namespace stretto::tasks
