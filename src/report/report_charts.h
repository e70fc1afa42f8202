#pragma once

#include <string>

#include "report/curves.h"

namespace stretto::report {

/// The section of a page with a run's curves. What training measures, throughput, learning rate and
/// gradient norm are always there; scores of validation, the noise scale, the loss scale and
/// communication when the run has them. All charts have the same axis of steps.
std::string render_charts(const Curves& curves, const Display& display);

}  // namespace stretto::report
