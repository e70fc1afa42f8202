#pragma once

#include "experiment/family_plan.h"

namespace stretto::experiment {

/// What `stretto plan` asks of language models; sizes are a tasks::TextSizes.
FamilyPlan language_model_plan();

}  // namespace stretto::experiment
