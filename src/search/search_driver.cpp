#include "search/search_driver.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "search/changes.h"
#include "search/search_folder.h"
#include "search/trial_results.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

Journal open_journal(const fs::path& directory) {
  log::open_file(directory / "log.txt");
  const fs::path path = journal_path(directory);
  Journal journal(path);
  if (journal.was_torn()) {
    log::warn(path.string() +
              ": the last line was cut short or damaged, and is left out; it is decided anew");
  }
  if (journal.entries().empty()) require_no_trials(directory);
  return journal;
}

SearchState state_of(const Journal& journal, const fs::path& directory, const SearchPlan& plan) {
  if (journal.entries().empty()) return SearchState(plan);
  return SearchState::replay(journal.entries(), journal_path(directory).string());
}

}  // namespace

SearchDriver::SearchDriver(fs::path directory, SearchPlan plan, const std::string& points_place,
                           bool accept_data)
    : directory_(std::move(directory)),
      plan_(std::move(plan)),
      lock_(lock_search(directory_)),
      data_(directory_, accept_data),
      journal_(open_journal(directory_)),
      state_(state_of(journal_, directory_, plan_)),
      points_(points_place),
      clock_before_(state_.clock()) {
  if (journal_.entries().empty()) {
    journal_.append(SearchState::entry_of(plan_, "begin"));
    log::info("new search " + directory_.string());
  } else {
    go_on();
  }
}

void SearchDriver::go_on() {
  const std::string kept = state_.plan().toml;
  state_.make_values_absolute(plan_.folder);
  require_may_go_on(directory_.string(), state_.plan(), plan_);
  for (const auto& trial : state_.trials()) data_.require(plan_, trial.point);
  const bool has_changed = kept != plan_.toml || state_.plan().recipe != plan_.recipe;
  // Files that the configuration names may be there by now; earlier releases kept no such number.
  if (has_changed || state_.plan().refused != plan_.refused) {
    journal_.append(state_.change(plan_));
  }
  if (has_changed) log::info("the search goes on with a changed file");
  log::info("search " + directory_.string() +
            " goes on: " + counted(std::ssize(state_.trials()), "trial") + " so far");
  for (const Job& job : state_.running()) {
    if (has_failed_for_good(job)) ended(job);  // its turn had not come
  }
}

double SearchDriver::clock() const {
  return clock_before_ + seconds_since(began_);
}

bool SearchDriver::is_time_up() const {
  const double hours = state_.plan().options.search.max_hours;
  return hours > 0 && clock() >= hours * 3600;
}

std::vector<Job> SearchDriver::unfinished() const {
  auto jobs = state_.running();
  std::erase_if(jobs, [&](const Job& job) { return has_failed_for_good(job); });
  return jobs;
}

std::optional<Job> SearchDriver::next() {
  if (is_time_up()) return std::nullopt;
  const auto begun = state_.next(points_.next(state_));
  if (!begun) return std::nullopt;
  if (begun->job.begins) points_.taken();
  journal_.append(begun->entry);
  return begun->job;
}

void SearchDriver::require_same_files(const Job& job) {
  require_same_recipe(state_.plan());
  data_.require(plan_, state_.trial(job.trial).point);
}

std::optional<Job> SearchDriver::take_ended(bool in_order) {
  for (const Job& job : state_.running()) {
    const auto found = std::find(ended_.begin(), ended_.end(), job);
    if (found != ended_.end()) {
      ended_.erase(found);
      return job;
    }
    if (in_order) break;
  }
  return std::nullopt;
}

bool SearchDriver::has_failed_for_good(const Job& job) const {
  const Trial& trial = state_.trial(job.trial);
  if (trial.failures == 0 || trial.failed_until != job.until) return false;
  return is_final(trial.exit_code) || trial.failures > state_.plan().options.search.max_restarts;
}

bool SearchDriver::fail(const Job& job, int exit_code, const std::string& why) {
  journal_.append(state_.fail(job, exit_code, why));
  if (!has_failed_for_good(job)) return true;
  ended(job);
  return false;
}

void SearchDriver::report(const Job& job, const Report& report) {
  journal_.append(state_.report(job, report, clock()));
}

}  // namespace stretto::search
