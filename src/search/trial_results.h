#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/chart_math.h"

namespace stretto::search {

/// Whether the same training would end with this exit code again.
bool is_final(int exit_code);

/// What a run folder says of a metric where a job ended, and how far the run came in all.
struct ReportedValue {
  int64_t updates = 0;          ///< made by then; steps that were left out are none
  std::optional<double> value;  ///< absent: the validation has no such score, or no number
  double seconds = 0;           ///< trained in all by then
  int64_t made = 0;             ///< by the last line of metrics.jsonl: more in a run that is ahead
};
/// The validation after `until` updates, as `metrics.jsonl` has it; the last one of a run that its
/// configuration ended earlier. Absent when there is none: another validation is no fair
/// comparison. Throws Error(kBadData), Error(kIo).
std::optional<ReportedValue> value_at(const std::filesystem::path& run_directory,
                                      const std::string& metric, int64_t until);
/// How far a run folder came, by the last line of `metrics.jsonl`; zeros where there is none.
/// Throws Error(kIo).
struct RunProgress {
  int64_t updates = 0;
  double seconds = 0;
};
RunProgress run_progress(const std::filesystem::path& run_directory);
/// A metric at all validations of a run folder, x is the step; empty when there are none, or its
/// `metrics.jsonl` cannot be read.
std::vector<report::Point> validations_of(const std::filesystem::path& run_directory,
                                          const std::string& metric);

}  // namespace stretto::search
