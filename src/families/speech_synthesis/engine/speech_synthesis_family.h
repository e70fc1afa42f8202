#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Sounds of sentences.
const Family& speech_synthesis_family();

}  // namespace stretto::tasks
