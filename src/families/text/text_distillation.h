#pragma once

#include <string>
#include <vector>

#include "experiment/family_distillation.h"

namespace stretto::experiment {

/// FamilyDistillation::word_level_keys of every family with `loss.teacher`.
std::vector<std::string> word_level_keys(const std::string& teacher_run,
                                         const std::string& checkpoint);

/// What `stretto distill` asks of a family on encoded texts with `loss.teacher`: a student learns
/// its teacher's probabilities, and the teacher writes nothing.
FamilyDistillation text_distillation();

}  // namespace stretto::experiment
