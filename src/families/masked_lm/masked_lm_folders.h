#pragma once

#include "interchange/model_folders.h"

namespace stretto::interchange {

const ModelFolders& masked_lm_folders();

}  // namespace stretto::interchange
