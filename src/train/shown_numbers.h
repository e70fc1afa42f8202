#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "report/display.h"
#include "report/metrics_log.h"
#include "report/progress.h"
#include "train/task.h"

/// A task's numbers as people see them: in metrics.jsonl, on the line of progress and in the log.
namespace stretto::train {

/// The key of a counter in metrics.jsonl: "audio_seconds" of "audio seconds".
std::string key_of(const std::string& counter);

/// Counts of an update under the keys of their names. @param counts  one for each name
report::NamedNumbers named_counts(const std::vector<std::string>& names,
                                  const std::vector<int64_t>& counts);

/// What is measured beside the loss of an update: each of several losses that it had, and what the
/// task makes of its sums.
std::vector<Score> measures_of(const Task& task, const Totals& totals);

/// The same for metrics.jsonl.
report::NamedNumbers named_measures(const std::vector<Score>& measures);

/// The loss, then those of the measures that have a label there.
std::vector<report::ProgressNumber> progress_numbers(double loss,
                                                     const std::vector<Score>& measures,
                                                     const report::Display& display);

/// A "valid" event without its step, epoch and seconds. What training has none of
/// (NumberStyle::of_validation) are its scores, other numbers stand behind the loss.
report::MetricsEvent validation_event(const Validation& validation, const report::Display& display);

/// "loss 3.0000, nll 3.0000, ppl 20.09 (exp of nll)"
std::string validation_text(const Validation& validation, const report::Display& display);

}  // namespace stretto::train
