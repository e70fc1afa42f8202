#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "labelling"`. No libtorch.
FamilySpec labelling_spec();

}  // namespace stretto::experiment
