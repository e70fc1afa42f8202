#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "text_classification"`.
FamilySpec text_classification_spec();

}  // namespace stretto::experiment
