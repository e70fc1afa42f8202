#pragma once

#include "experiment/family_spec.h"

namespace stretto::experiment {

/// The family of `task.name = "question_answering"`.
FamilySpec question_answering_spec();

}  // namespace stretto::experiment
