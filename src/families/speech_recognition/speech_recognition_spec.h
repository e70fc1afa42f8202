#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "speech_recognition"`.
FamilySpec speech_recognition_spec();

}  // namespace stretto::experiment
