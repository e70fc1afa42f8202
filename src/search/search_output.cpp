#include "search/search_output.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "search/search_files.h"
#include "search/search_folder.h"
#include "search/trial_results.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kPageSeconds = 10;  // between two writings of search.html

}  // namespace

SearchOutput::SearchOutput(fs::path directory, std::string shown)
    : directory_(std::move(directory)), shown_(std::move(shown)) {}

void SearchOutput::write(const SearchState& state) {
  write_file_atomic(directory_ / "trials.jsonl", trials_jsonl(state));
  write_best(state);
  if (seconds_since(page_written_) >= kPageSeconds) write_page(state, "running");
}

void SearchOutput::write_best(const SearchState& state) {
  const auto best = state.best();
  if (!best) return;
  const auto& report = state.trial(*best).reports.back();
  const std::string which = std::to_string(*best) + " " + std::to_string(report.until) + " " +
                            std::to_string(state.trials().size());
  if (which == best_written_) return;
  try {
    write_file_atomic(directory_ / "best.toml", best_toml(state, *best, shown_));
    best_written_ = which;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    log::warn("best.toml cannot be written: " + error.message());
  }
}

void SearchOutput::write_page(const SearchState& state, const std::string& status) {
  page_written_ = Clock::now();
  for (const auto& trial : state.trials()) {
    const size_t reports = trial.reports.size();
    if (auto& known = curve_reports_[trial.id]; known != reports) {
      known = reports;
      curves_[trial.id] =
          validations_of(trial_directory(directory_, trial.id), state.plan().metric);
    }
  }
  const SearchPage page{
      .state = state,
      .curves = curves_,
      .title = fs::absolute(directory_).lexically_normal().filename(),
      .status = status,
      .refresh_seconds = status == "running" ? static_cast<int>(kPageSeconds) : 0};
  write_file_atomic(directory_ / "search.html", render_search_html(page));
}

}  // namespace stretto::search
