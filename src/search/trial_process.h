#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "report/chart_math.h"
#include "search/scheduler.h"
#include "search/search_plan.h"

namespace stretto::search {

/// What a trial's process is asked to do.
struct TrialRun {
  std::filesystem::path config;        ///< the configuration
  std::vector<std::string> overrides;  ///< of the plan, then of the point
  std::filesystem::path directory;     ///< run folder: DIR/trials/N
  int64_t until = 0;                   ///< updates in all
  int64_t threads = 1;
};

/// The words of a trial's process: `stretto train`, but for tests.
using TrialCommand = std::function<std::vector<std::string>(const TrialRun&)>;

/// `PROGRAM train CONFIG KEY=VALUE… --run DIRECTORY --until STEP --quiet`
std::vector<std::string> train_words(const std::string& program, const TrialRun& run);

/// A trial that trains, as a process of its own. It dies with this one: then it gets SIGINT, saves
/// and leaves. Its output goes to the end of `DIRECTORY/output.txt`.
class TrialProcess {
 public:
  TrialProcess(Job job, TrialRun run, const TrialCommand& command);

  const Job& job() const { return job_; }
  /// Starts the process, once no other one holds the run folder: that of a killed search may still
  /// be saving. @return its exit code once it has ended, 128 + signal when it was killed
  std::optional<int> poll();
  /// Asks it to save and leave.
  void stop();
  /// The last line of its output that says what went wrong; empty = none does.
  std::string complaint() const;

 private:
  bool may_start() const;

  Job job_;
  TrialRun run_;
  std::vector<std::string> words_;
  std::optional<ChildProcess> process_;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// What a run folder says of a metric: the last validation of `metrics.jsonl`, and the time trained
/// in all. Absent when there is none. Throws Error(kBadData), Error(kIo).
struct LastValidation {
  int64_t step = 0;
  std::optional<double> value;  ///< absent: it has no such score, or no number
  double seconds = 0;
};
std::optional<LastValidation> last_validation(const std::filesystem::path& run_directory,
                                              const std::string& metric);
/// A metric at all validations of a run folder, x is the step; empty when there are none, or its
/// `metrics.jsonl` cannot be read.
std::vector<report::Point> validations_of(const std::filesystem::path& run_directory,
                                          const std::string& metric);

}  // namespace stretto::search
