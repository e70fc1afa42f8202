#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stretto::seeds {

/// The scores of one validation, in the order of metrics.jsonl: the loss first.
struct ValidationScores {
  int64_t step = 0;
  std::vector<std::pair<std::string, double>> scores;  ///< finite numbers only

  std::optional<double> number(const std::string& name) const;
};

/// What the metrics.jsonl of a run says of it.
struct RunScores {
  std::optional<ValidationScores> best;  ///< the validation that `best` means, never step 0
  std::optional<ValidationScores> last;
  std::optional<double> seconds;  ///< trained in all, sessions together
};

/// By which score one validation is better than another (eval.best_metric).
struct BestBy {
  std::string name = "nll";
  bool higher_is_better = false;
};

/// The first number that differs between two readings of one run, in words: "best nll is 2.5, it
/// was 2.25"; empty where none does.
std::string difference_between(const RunScores& before, const RunScores& now);

/// Empty for a run without metrics.jsonl; broken lines are left out. Throws Error(kIo).
RunScores read_run_scores(const std::filesystem::path& run_directory, const BestBy& by);

}  // namespace stretto::seeds
