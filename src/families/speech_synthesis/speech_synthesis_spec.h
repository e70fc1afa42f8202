#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "speech_synthesis"`.
FamilySpec speech_synthesis_spec();

}  // namespace stretto::experiment
