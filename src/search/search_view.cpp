#include "search/search_view.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "report/terminal.h"
#include "report/utf8.h"
#include "search/search_files.h"

namespace stretto::search {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kDrawSeconds = 0.5;
constexpr size_t kRows = 12;

std::string cut(const std::string& line, size_t columns) {
  return report::count_code_points(line) <= columns ? line : report::ellipsis(line, columns);
}

std::string trial_name(TrialId trial) {
  return "trial " + std::to_string(trial);
}

// "3rd of 7" at its rung; empty when it is at none.
std::string place_text(const SearchState& state, const Job& job) {
  const int64_t bracket = state.scheduler().bracket_of(job.trial);
  for (const auto& rung : state.scheduler().rungs()) {
    if (rung.bracket != bracket || rung.until != job.until) continue;
    const auto& all = rung.competitors;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Competitor& competitor) {
      return competitor.trial == job.trial;
    });
    if (found == all.end()) return "";
    return "number " + std::to_string(found - all.begin() + 1) + " of " +
           std::to_string(all.size()) + " there";
  }
  return "";
}

// "3 of 12 points begun · 4 refused · 2 train · nll · 3m 20s"
std::string head_line(const SearchState& state) {
  const auto& plan = state.plan();
  const auto refused = static_cast<int64_t>(plan.refused.count);
  return std::to_string(state.trials().size()) + " of " + plan.budget_text() + " begun · " +
         (refused > 0 ? with_thousands(refused) + " refused · " : "") +
         std::to_string(state.running().size()) + " train · " + plan.metric + " · " +
         human_duration(state.clock());
}

std::string row(const SearchState& state, const Trial& trial, const std::string& standing) {
  const auto value = trial.value();
  return padded((state.best() == trial.id ? "* " : "  ") + std::to_string(trial.id), 7) +
         padded(standing, 22) + padded(value ? fixed(*value, 4) : "", 11) +
         short_point(state.plan().space, trial.point);
}

// Once for a trial: it would come no further at its next rungs either.
void tell_early_end(const Trial& trial) {
  const auto ended_early = [](const Report& report) {
    return report.value && report.step < report.until;
  };
  const auto& reports = trial.reports;
  if (!ended_early(reports.back())) return;
  if (std::any_of(reports.begin(), std::prev(reports.end()), ended_early)) return;
  log::warn(trial_name(trial.id) + " ended at update " + with_thousands(trial.updates()) + " of " +
            with_thousands(reports.back().until) +
            ", by train.patience, train.max_epochs or train.max_hours; it is compared as if it had "
            "come further");
}

}  // namespace

std::string short_point(const Space& space, const Point& point) {
  std::vector<std::string> words;
  for (size_t i = 0; i < point.size(); ++i) {
    if (!point[i]) continue;
    const std::string& key = space.parameters[i].key;
    words.push_back(key.substr(key.rfind('.') + 1) + "=" + *point[i]);
  }
  return join(words, " ");
}

std::vector<std::string> table_lines(const SearchState& state, size_t rows, size_t columns) {
  std::vector<std::string> lines{head_line(state)};
  for (const auto& job : state.running()) {
    lines.push_back(row(state, state.trial(job.trial), "until " + with_thousands(job.until)));
  }
  std::vector<TrialId> others;
  for (const auto& trial : state.trials()) {
    if (state.state_of(trial.id) != TrialState::kRunning) others.push_back(trial.id);
  }
  std::sort(others.begin(), others.end(),
            [&](TrialId a, TrialId b) { return state.is_better(a, b); });
  for (const TrialId id : others) {
    if (lines.size() > rows) break;
    const Trial& trial = state.trial(id);
    lines.push_back(
        row(state, trial,
            std::string(name_of(state.state_of(id))) + " at " + with_thousands(trial.updates())));
  }
  for (auto& line : lines) line = cut(printable(line, 4000), columns);
  return lines;
}

/// The table on a terminal. The log calls `clear` and `redraw` around each of its lines.
struct SearchView::Screen {
  std::vector<std::string> lines;
  size_t drawn = 0;  // lines on the screen, the cursor behind the last
  Clock::time_point last{};

  void clear() {
    std::string out;
    for (; drawn > 0; --drawn) out += "\x1b[1A" + std::string(report::kEraseLine);
    report::write_stderr(out);
  }
  void draw() {
    clear();
    std::string out;
    for (const auto& line : lines) {
      out += (report::colour_wanted() ? report::decorated(line) : line) + "\n";
    }
    drawn = lines.size();
    report::write_stderr(out);
  }
  static void clear_for_log(void* screen) { static_cast<Screen*>(screen)->clear(); }
  static void redraw_after_log(void* screen) { static_cast<Screen*>(screen)->draw(); }
};

SearchView::SearchView() {
  if (!report::live_lines_wanted()) return;
  screen_ = std::make_unique<Screen>();
  log::set_screen_hooks({&Screen::clear_for_log, &Screen::redraw_after_log, screen_.get()});
}

SearchView::~SearchView() {
  finish();
}

void SearchView::renew(const SearchState& state) {
  if (screen_ == nullptr) return;
  screen_->lines =
      table_lines(state, kRows, static_cast<size_t>(std::max(20, report::terminal_columns())));
}

void SearchView::opened(const SearchState& state) {
  const auto& plan = state.plan();
  for (const auto& line : state.scheduler().plan()) log::info("  " + line);
  const std::string refused = plan.refused_text(), cut = plan.cut_text();
  if (!refused.empty()) {
    log::warn(refused + "; take other values, or give `when` to what does not go together");
  }
  if (!cut.empty()) log::warn(cut + "; without it all are");
  if (plan.grid_points > 0 && refused.empty() && cut.empty()) {
    log::info("  the grid has " + plan.grid_text());
  }
}

void SearchView::began(const SearchState& state, const Job& job) {
  renew(state);
  const Trial& trial = state.trial(job.trial);
  if (job.begins) {
    log::info(trial_name(job.trial) +
              " begins: " + printable(state.plan().space.text(trial.point), 4000));
  } else if (!trial.reports.empty()) {
    log::info(trial_name(job.trial) + " goes on to " + with_thousands(job.until));
  }
}

void SearchView::reported(const SearchState& state, const Job& job) {
  renew(state);
  const Trial& trial = state.trial(job.trial);
  if (!trial.value()) return;
  const std::string place = place_text(state, job);
  log::info(trial_name(job.trial) + ": " + value_text(state.plan(), trial.value()) + " at " +
            with_thousands(trial.updates()) + (place.empty() ? "" : ", " + place));
  tell_early_end(trial);
}

void SearchView::failed(const SearchState& state, const Job& job, bool tried_again) {
  renew(state);
  const Trial& trial = state.trial(job.trial);
  log::warn(trial_name(job.trial) + " failed with exit code " + std::to_string(trial.exit_code) +
            (trial.why.empty() ? "" : ": " + trial.why) +
            (tried_again ? "; it is tried again" : "; it counts as the worst") + " (trials/" +
            std::to_string(job.trial) + "/output.txt)");
}

void SearchView::tick(const SearchState& state) {
  if (screen_ == nullptr || seconds_since(screen_->last) < kDrawSeconds) return;
  screen_->last = Clock::now();
  renew(state);
  screen_->draw();
}

void SearchView::finish() {
  if (screen_ == nullptr) return;
  log::set_screen_hooks({});
  screen_->clear();
  screen_.reset();
}

void SearchView::ended(const SearchState& state, const std::filesystem::path& directory,
                       bool is_time_up) {
  const Trial& best = state.trial(*state.best());
  log::info(std::string(is_time_up ? "search.max_hours reached" : "finished") + ": " +
            counted(std::ssize(state.trials()), "trial") + ", the best is " + trial_name(best.id) +
            " with " + value_text(state.plan(), best.value()));
  log::info("  " + printable(state.plan().space.text(best.point), 4000));
  log::info("  page: " + (directory / "search.html").string());
  log::info("  its configuration: " + (directory / "best.toml").string());
}

}  // namespace stretto::search
