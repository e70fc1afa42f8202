#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "translation"`.
FamilySpec translation_spec();

}  // namespace stretto::experiment
