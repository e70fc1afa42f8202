#pragma once

#include "interchange/model_folders.h"

namespace stretto::interchange {

const ModelFolders& translation_folders();

}  // namespace stretto::interchange
