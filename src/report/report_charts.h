#pragma once

#include <string>

#include "report/curves.h"

namespace stretto::report {

/// The section of a page with a run's curves. Loss, perplexity, throughput, learning rate and
/// gradient norm are always there; a score, the noise scale, the loss scale and communication when
/// the run has them. All charts have the same axis of steps.
std::string render_charts(const Curves& curves);

}  // namespace stretto::report
