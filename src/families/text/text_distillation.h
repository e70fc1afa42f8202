#pragma once

#include "experiment/family_distillation.h"

namespace stretto::experiment {

/// What `stretto distill` asks of a family on encoded texts with `loss.teacher`: a student learns
/// its teacher's probabilities, and the teacher writes nothing.
FamilyDistillation text_distillation();

}  // namespace stretto::experiment
