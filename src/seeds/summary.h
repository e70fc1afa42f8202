#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/display.h"
#include "seeds/run_scores.h"

namespace stretto::seeds {

/// Mean and sample deviation, which divides by n - 1, of n numbers.
struct Spread {
  double mean = 0;
  std::optional<double> deviation;  ///< absent of a single number
  int64_t runs = 0;                 ///< n
};
/// Nothing of no numbers.
std::optional<Spread> spread_of(const std::vector<double>& values);

using NamedSpreads = std::vector<std::pair<std::string, Spread>>;

/// Over runs: each score at the best validation and at the last one, and the time.
struct Summary {
  NamedSpreads best, last;  ///< in the order of the first run; a score that one lacks counts fewer
  std::optional<Spread> seconds;
};
Summary summarise(const std::vector<RunScores>& runs);

/// The summary as lines of text; no lines of nothing.
/// @param display  labels and decimals of the task's numbers
std::vector<std::string> summary_lines(const Summary& summary, const report::Display& display);

}  // namespace stretto::seeds
