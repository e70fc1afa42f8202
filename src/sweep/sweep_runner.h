#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/signals.h"
#include "sweep/grid_options.h"
#include "sweep/sweep_page.h"
#include "sweep/swept_point.h"

namespace stretto::sweep {

struct SweepSetup {
  GridOptions options;
  std::vector<SweptRun> runs;  ///< at least one
  std::filesystem::path directory;
  std::string program;          ///< this one, for the processes that do the work
  std::string checkpoint = {};  ///< of each run; empty = best, else last
};

/// Compresses each run in each way, scores it and times it, one after the other in processes of
/// their own:
///
///     DIR/sweep.tsv, sweep.html  the table and the page, anew after each point
///     DIR/points/NAME/           a run folder (of the run as it is: none)
///     DIR/results/NAME.json      what the point came to, and what was asked for
///     DIR/logs/NAME.*.txt        what the processes printed
///
/// What is there already for the same request is kept, so that a sweep goes on where it stopped.
class SweepRunner {
 public:
  /// Throws Error(kUsage) for a metric that a run does not have, for a run without a checkpoint,
  /// for one whose weights are packed already, and for `grid.data` that a run cannot take.
  explicit SweepRunner(SweepSetup setup);

  /// A point that fails is named, and the others go on. Throws Error(kInterrupted) after SIGINT,
  /// Error(kIo), Error(kUsage) where another process works in the folder or trains one of the runs.
  /// @param json  the results on stdout as one JSON object, in the place of the table
  /// @return kOk, or the code of the first failure
  ExitCode run(bool json);

 private:
  PointResult result_of(const SweptPoint& point) const;
  PointResult measured(const SweptPoint& point) const;
  nlohmann::json request_of(const SweptPoint& point) const;
  std::string output_of(const SweptPoint& point, const std::string& what,
                        std::vector<std::string> words) const;
  SweepView view(bool has_ended) const;
  void write(bool has_ended) const;
  void print(bool json) const;

  SweepSetup setup_;
  std::vector<SweptPoint> points_;
  std::vector<std::string> data_hashes_;  ///< of the files of grid.data
  KnownScore metric_;
  std::vector<PointResult> results_;
  std::vector<std::string> failed_;    ///< names of points
  const StopSignals* stop_ = nullptr;  ///< while it runs
};

}  // namespace stretto::sweep
