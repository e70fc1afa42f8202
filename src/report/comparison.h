#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/curves.h"
#include "report/display.h"
#include "report/metrics_log.h"

/// Several runs side by side: what `stretto report A B` draws. The runs may be of different
/// families of tasks; a number of theirs is known by its name in metrics.jsonl.
namespace stretto::report {

/// The most runs whose curves are drawn: as many as can be told apart by colour and dashes.
inline constexpr size_t kMostComparedRuns = 24;
/// The most runs of one page. Beyond kMostComparedRuns, it has no curves.
inline constexpr size_t kMostRuns = 240;

/// The batch of a run's updates, and how its learning rate begins.
struct BatchSetting {
  double size = 0;                     ///< the bound of an update; 0 = it is not known
  std::string unit = {};               ///< "pictures"
  std::string warmup = {};             ///< "gradual warm-up", "no warm-up"
  std::vector<std::string> keys = {};  ///< that set the size
};

struct ComparedRun {
  std::string name;                                          ///< its own on this page
  std::string folder;                                        ///< as the user gave it
  std::string task;                                          ///< name of the family
  std::string status;                                        ///< as ReportContent::status
  std::vector<std::pair<std::string, std::string>> machine;  ///< as ReportContent::machine
  std::vector<MetricsEvent> events;
  Display display = {};
  /// Every key of the configuration with its value as TOML, in the order of declaration.
  std::vector<std::pair<std::string, std::string>> keys = {};
  BatchSetting batch = {};
};

/// A run that could not be read.
struct LeftOutRun {
  std::string folder, why;
};

struct Comparison {
  std::vector<ComparedRun> runs;  ///< at most kMostRuns
  std::vector<LeftOutRun> left_out = {};
};

/// Whether the curves of these runs can be told apart.
inline bool has_curves(const Comparison& comparison) {
  return comparison.runs.size() <= kMostComparedRuns;
}

/// Names for runs of these titles: a title that several runs have is replaced by their folders.
std::vector<std::string> distinct_names(const std::vector<std::string>& titles,
                                        const std::vector<std::string>& folders);

/// Whether it can be said which of the runs is the best by a number that the `measured` ones have:
/// at least two, all of one family. The loss of another family is another quantity.
bool are_comparable(const std::vector<ComparedRun>& runs, const std::vector<bool>& measured);

/// A key that not all runs give the same value.
struct KeyDifference {
  std::string key;
  std::vector<std::optional<std::string>> values;  ///< of each run; absent: it has no such key
};
/// All of them, in the order in which the keys are declared; those of one run alone come behind the
/// key that precedes them there.
std::vector<KeyDifference> key_differences(const std::vector<ComparedRun>& runs);

/// A number of validations, as the runs that have it reached it at best.
struct BestNumber {
  NumberStyle style;                       ///< of the first run that has it
  std::string title;                       ///< heading of a column
  std::vector<std::optional<Point>> best;  ///< of each run: step and value, never of step 0
  std::vector<bool> winners;  ///< the runs whose value is the best, where are_comparable() holds
};
/// The numbers that the pages of the runs have in their tables of validations.
std::vector<BestNumber> best_numbers(const std::vector<ComparedRun>& runs,
                                     const std::vector<Curves>& curves);

std::vector<Curves> curves_of(const std::vector<ComparedRun>& runs);

/// Seconds that a run has trained; absent where no event tells.
std::optional<double> trained_seconds(const ComparedRun& run);

/// The share of its updates for which a run waited for their data, by the logged updates: long
/// updates count by their length. Absent where no event tells it.
std::optional<double> data_wait_share(const ComparedRun& run);

/// The rows of ReportContent::machine that bear on speed, in one line; empty = nothing is known.
std::string machine_text(const ComparedRun& run);

}  // namespace stretto::report
