#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "image_classification"`.
FamilySpec image_classification_spec();

}  // namespace stretto::experiment
