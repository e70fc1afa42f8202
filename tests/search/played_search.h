#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "search/search_state.h"
#include "search/trial_process.h"
#include "tests/search/bench.h"

namespace stretto::testing {

/// Runs a search without processes, one trial at a time.
/// @param value_of  what a trial reports; absent: it fails
using PlayedValue =
    std::function<std::optional<double>(const search::Trial& trial, const search::Job& job)>;

inline std::vector<search::JournalEntry> play(search::SearchState& state,
                                              const PlayedValue& value_of) {
  std::vector<search::JournalEntry> entries;
  const auto always = [](const search::Point&) { return true; };
  for (;;) {
    const auto choice =
        state.plan().sampler().next(state.known_points(), state.num_enqueued(), always);
    const auto begun = state.next(choice);
    if (!begun) return entries;
    entries.push_back(begun->entry);
    const auto& job = begun->job;
    const auto value = value_of(state.trials()[static_cast<size_t>(job.trial)], job);
    if (!value) entries.push_back(state.fail(job, 70, "it <diverged>"));
    entries.push_back(state.report(
        job, {.until = job.until, .step = job.until, .value = value, .seconds = 1}, 2.5));
  }
}

/// The distance of the learning rate from 1e-3, which grows smaller by training; the width counts
/// for little.
inline std::optional<double> played_loss(const search::Trial& trial, const search::Job& job) {
  const double width = trial.point.size() > 1 && trial.point[1] ? std::stod(*trial.point[1]) : 0;
  return std::abs(std::log10(std::stod(*trial.point[0])) + 3) + 1e-5 * width +
         1.0 / static_cast<double>(job.until);
}

}  // namespace stretto::testing
