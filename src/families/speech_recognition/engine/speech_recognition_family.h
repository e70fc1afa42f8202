#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// Texts, or labels, of sounds: task.name = "speech_recognition".
const Family& speech_recognition_family();

}  // namespace stretto::tasks
