#pragma once

#include "experiment/family_distillation.h"

namespace stretto::experiment {

/// What `stretto distill` asks of labels of texts: a student learns the probabilities of its
/// teacher, or its values.
FamilyDistillation text_classification_distillation();

}  // namespace stretto::experiment
