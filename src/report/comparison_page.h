#pragma once

#include <filesystem>
#include <string>

#include "report/comparison.h"

namespace stretto::report {

/// One self-contained page, as report.html is: no script, no network, light and dark, all data
/// escaped. The runs with state, speed and machine; their curves over updates, over what throughput
/// counts and over time, of which a reader chooses one; a number against the batch, where runs
/// differ in it (report/batch_figure.h); best scores; keys that differ.
std::string render_comparison(const Comparison& comparison);

/// The same for programs: one JSON object, at most 600 points of a curve.
///
///     {"format": 1,
///      "runs": [{"name", "folder", "task", "status", "step", "seconds", "rate", "rate_unit",
///                "machine": {LABEL: VALUE}, "best": {NUMBER: {"value", "step"}}}],
///      "left_out": [{"folder", "why"}],
///      "differences": [{"key", "values": [TOML or null, one for each run]}],
///      "charts": [{"title", "over", "unit", "curves": [{"run": INDEX, "points": [[x, y]]}]}],
///      "batches": {"title", "number", "unit", "others": [KEY],
///                  "lines": [{"name", "points": [{"batch", "mean", "deviation", "runs":
///                  [INDEX]}]}]}}
///
/// Numbers that are not known are null, and so is "batches" without a figure. An entry of `rate` is
/// the median of the logged updates.
std::string comparison_json(const Comparison& comparison);

/// Whether a file begins as comparison_json() does. False where it cannot be read.
bool is_comparison_json(const std::filesystem::path& path);

}  // namespace stretto::report
