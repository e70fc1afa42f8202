#pragma once

#include "experiment/family_distillation.h"

namespace stretto::experiment {

/// What `stretto distill` asks of translation: the teacher translates the sources of the student's
/// training text (sequence-level knowledge distillation, Kim and Rush 2016, arXiv:1606.07947).
FamilyDistillation translation_distillation();

}  // namespace stretto::experiment
