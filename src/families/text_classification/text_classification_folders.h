#pragma once

#include "interchange/model_folders.h"

namespace stretto::interchange {

const ModelFolders& text_classification_folders();

}  // namespace stretto::interchange
