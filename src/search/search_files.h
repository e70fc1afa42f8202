#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "search/search_state.h"

namespace stretto::search {

/// The table of a search: one JSON object for each trial, in the order of their numbers.
///
/// `trial`, `state`, `point` (numbers as numbers), `bracket`, `updates`, `value`, `reports` (pairs
/// of updates and value), `failures`, `run`; for a trial that failed `error` and `log`; `seconds`,
/// the only one that is no function of file and seed. Updates are those that it made
/// (Trial::updates()).
nlohmann::ordered_json trial_json(const SearchState& state, const Trial& trial);
/// The lines of `trials.jsonl`.
std::string trials_jsonl(const SearchState& state);
/// What `stretto search --json` prints: the search, its best trial and all trials. For a grid,
/// `grid` has `points` (null = more than SearchPlan::kMostCounted), `looked_at`, and `refused`: how
/// many of those that were looked at break a rule, with `first_refused` and `why` of the first.
nlohmann::ordered_json search_json(const SearchState& state);

/// The whole configuration of the best trial, ready to train; with a remark in front.
/// Throws Error(kUsage) when it cannot be made any more: a file that it names is gone.
std::string best_toml(const SearchState& state, TrialId best, const std::string& shown);

/// The text and spaces behind it, at least one, to so many columns.
std::string padded(const std::string& text, size_t columns);

/// "nll 2.3145"
std::string value_text(const SearchPlan& plan, std::optional<double> value);

}  // namespace stretto::search
