#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "masked_lm"`.
FamilySpec masked_lm_spec();

}  // namespace stretto::experiment
