#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "search/search_html.h"
#include "search/search_state.h"

namespace stretto::search {

/// The files that show how a search stands: `trials.jsonl`, `best.toml` and `search.html`. Each is
/// replaced as a whole, and made of the journal and the run folders alone.
class SearchOutput {
 public:
  /// @param directory  DIR
  /// @param shown      name of the search file, for best.toml
  SearchOutput(std::filesystem::path directory, std::string shown);

  /// After each report: the table and the best configuration; the page when it is ten seconds old.
  /// A best.toml that cannot be made any more is warned of. Throws Error(kIo).
  void write(const SearchState& state);
  /// @param status  "running", "finished", "stopped"
  void write_page(const SearchState& state, const std::string& status);

 private:
  void write_best(const SearchState& state);

  std::filesystem::path directory_;
  std::string shown_;
  std::string best_written_;  // which best.toml there is
  std::chrono::steady_clock::time_point page_written_{};
  TrialCurves curves_;                       // as search.html has them
  std::map<TrialId, size_t> curve_reports_;  // of how many reports
};

}  // namespace stretto::search
