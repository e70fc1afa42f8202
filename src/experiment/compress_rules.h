#pragma once

#include "experiment/rule_check.h"

namespace stretto::experiment {

/// Rules of `[compress]`: prunings that all come before the run ends, formats that there are.
void check_compress(RuleCheck& c);

}  // namespace stretto::experiment
