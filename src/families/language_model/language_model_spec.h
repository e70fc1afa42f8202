#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "language_model"`.
FamilySpec language_model_spec();

}  // namespace stretto::experiment
