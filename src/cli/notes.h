#pragma once

#include "config/problem.h"

namespace stretto::cli {

/// Says on stderr, a warning each, which keys and values somebody gave by names that they had.
void tell_notes(const config::Origins& origins);

}  // namespace stretto::cli
