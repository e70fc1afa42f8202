#pragma once

#include "interchange/model_folders.h"

namespace stretto::interchange {

const ModelFolders& question_answering_folders();

}  // namespace stretto::interchange
