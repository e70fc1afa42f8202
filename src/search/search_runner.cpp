#include "search/search_runner.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "search/changes.h"
#include "search/search_files.h"
#include "search/trial_folder.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

// The same training would end in the same way.
bool is_final(int code) {
  for (const ExitCode one : {ExitCode::kOk, ExitCode::kUsage, ExitCode::kBadData,
                             ExitCode::kNumeric, ExitCode::kUnsafe}) {
    if (code == static_cast<int>(one)) return true;
  }
  return false;
}

// Once for a trial: it would come no further at its next rungs either.
void tell_early_end(const Trial& trial) {
  const auto ended_early = [](const Report& report) {
    return report.value && report.step < report.until;
  };
  const auto& reports = trial.reports;
  if (!ended_early(reports.back())) return;
  if (std::any_of(reports.begin(), std::prev(reports.end()), ended_early)) return;
  log::warn("trial " + std::to_string(trial.id) + " ended at update " +
            with_thousands(trial.updates()) + " of " + with_thousands(reports.back().until) +
            ", by train.patience, train.max_epochs or train.max_hours; it is compared as if it had "
            "come further");
}

Places places_of(const RunnerSetup& setup) {
  const auto& options = setup.plan.options.search;
  auto hosts = setup.hosts;
  if (hosts.empty()) {
    const int64_t slots = options.slots > 0 ? options.slots : setup.cores;
    hosts.push_back({.slots = std::max(slots, options.slots_per_trial), .gpus = setup.gpus});
  }
  Places places(std::move(hosts),
                {.slots = options.slots_per_trial, .gpus = options.gpus_per_trial},
                setup.host_pause);
  if (places.capacity() == 0) {
    throw Error(ExitCode::kUsage,
                "search.gpus_per_trial: " + counted(options.gpus_per_trial, "GPU") +
                    " for a trial, but this machine has " + std::to_string(setup.gpus.size()),
                "0 lets trials share the device of the configuration");
  }
  return places;
}

}  // namespace

SearchRunner::SearchRunner(RunnerSetup setup)
    : setup_(std::move(setup)),
      lock_(lock_search(setup_.directory)),
      pool_(places_of(setup_), {.command = setup_.command,
                                .remote = {.shell = setup_.plan.options.search.remote_shell,
                                           .watcher = setup_.watcher},
                                .tick = setup_.tick}),
      data_(setup_.directory, setup_.accept_data),
      points_(setup_.points_place),
      output_(setup_.directory, setup_.shown) {
  log::open_file(setup_.directory / "log.txt");
  open_journal();
}

SearchRunner::~SearchRunner() = default;

void SearchRunner::open_journal() {
  const fs::path path = journal_path(setup_.directory);
  journal_ = std::make_unique<Journal>(path);
  if (journal_->was_torn()) {
    log::warn(path.string() +
              ": the last line was cut short or damaged, and is left out; it is decided anew");
  }
  if (journal_->entries().empty()) {
    require_no_trials(setup_.directory);
    state_ = std::make_unique<SearchState>(setup_.plan);
    journal_->append(SearchState::entry_of(setup_.plan, "begin"));
    log::info("new search " + setup_.directory.string());
  } else {
    state_ = std::make_unique<SearchState>(SearchState::replay(journal_->entries(), path.string()));
    const std::string kept = state_->plan().toml;
    state_->make_values_absolute(setup_.plan.folder);
    require_may_go_on(setup_.directory.string(), state_->plan(), setup_.plan);
    require_same_data();
    const bool has_changed =
        kept != setup_.plan.toml || state_->plan().recipe != setup_.plan.recipe;
    // Files that the configuration names may be there by now; earlier releases kept no such number.
    if (has_changed || state_->plan().refused != setup_.plan.refused) {
      journal_->append(state_->change(setup_.plan));
    }
    if (has_changed) log::info("the search goes on with a changed file");
    log::info("search " + setup_.directory.string() + " goes on: " +
              counted(static_cast<int64_t>(state_->trials().size()), "trial") + " so far");
  }
  clock_before_ = state_->clock();
  tell_plan();
}

void SearchRunner::tell_plan() const {
  const auto& plan = state_->plan();
  for (const auto& line : state_->scheduler().plan()) log::info("  " + line);
  const std::string refused = plan.refused_text(), cut = plan.cut_text();
  if (!refused.empty()) {
    log::warn(refused + "; take other values, or give `when` to what does not go together");
  }
  if (!cut.empty()) log::warn(cut + "; without it all are");
  if (plan.grid_points > 0 && refused.empty() && cut.empty()) {
    log::info("  the grid has " + plan.grid_text());
  }
}

bool SearchRunner::in_order() const {
  return state_->plan().options.search.deterministic || pool_.capacity() == 1;
}

double SearchRunner::clock() const {
  return clock_before_ + seconds_since(began_);
}

bool SearchRunner::is_time_up() const {
  const double hours = state_->plan().options.search.max_hours;
  return hours > 0 && clock() >= hours * 3600;
}

// Jobs that an earlier session began and whose end it did not see.
void SearchRunner::go_on_with_running() {
  const auto jobs = state_->running();
  for (const Job& job : jobs) {
    if (has_failed_for_good(job)) {
      ended_.push_back({job});  // its turn may not have come
    } else {
      start(job);
    }
  }
}

void SearchRunner::start(const Job& job) {
  pruned_.erase(job.trial);
  pool_.add(job, state_->running());
}

TrialRun SearchRunner::run_of(const Job& job, const Host& host) {
  require_same_recipe(state_->plan());
  const auto& plan = setup_.plan;
  const Trial& trial = state_->trials().at(static_cast<size_t>(job.trial));
  data_.require(plan, trial.point);
  if (pool_.num_hosts() > 1) {
    log::info("trial " + std::to_string(job.trial) + " trains on " + host.shown());
  }
  const fs::path folder = trial_directory(setup_.directory, job.trial);
  resumed_.erase(job.trial);
  if (holds_checkpoints(folder)) {
    require_own_run(folder, experiment_of(plan, trial.point));
    resumed_.insert(job.trial);
  }
  return {.config = plan.options.search.config,
          .overrides = overrides_of(plan, trial.point),
          .directory = folder,
          .until = job.until,
          .threads = plan.options.search.slots_per_trial,
          .accept_data = setup_.accept_data};
}

// Before the journal notes anything, so that a search whose data have changed does nothing.
void SearchRunner::require_same_data() {
  for (const auto& trial : state_->trials()) data_.require(setup_.plan, trial.point);
}

void SearchRunner::fill_slots() {
  while (state_->running().size() < pool_.capacity() && !is_time_up()) {
    const auto begun = state_->next(points_.next(*state_));
    if (!begun) return;
    if (begun->job.begins) points_.taken();
    journal_->append(begun->entry);
    view_.began(*state_, begun->job);
    start(begun->job);
  }
}

void SearchRunner::poll() {
  for (const auto& one : pool_.poll(state_->running())) {
    if (is_fault_of_machine(one.code)) refuse(one);
    refuse_changed_data(one);
    if (one.code == 0) {
      ended_.push_back(one);
    } else if (one.code != static_cast<int>(ExitCode::kBadData) ||
               !trains_again(one.job,
                             damage_of_run(trial_directory(setup_.directory, one.job.trial)))) {
      note_failure(one);
    }
  }
}

// Every other trial would meet it too.
void SearchRunner::refuse(const EndedJob& ended) {
  const fs::path output = trial_directory(setup_.directory, ended.job.trial) / "output.txt";
  throw Error(ExitCode::kIo,
              "trial " + std::to_string(ended.job.trial) + " cannot train: " +
                  (ended.why.empty() ? "its program does not start" : ended.why),
              "correct this, and the same command goes on; " + output.string() + " says more");
}

// It would count as the worst, though the data are to blame.
void SearchRunner::refuse_changed_data(const EndedJob& ended) {
  if (ended.code != static_cast<int>(ExitCode::kBadData)) return;
  if (ended.why.find(data::kDataHaveChanged) == std::string::npos) return;
  throw Error(ExitCode::kBadData,
              "trial " + std::to_string(ended.job.trial) + " cannot go on: " + ended.why,
              "put the files back as they were, and the same command goes on; with --accept-data "
              "it goes on with the files as they are");
}

bool SearchRunner::has_failed_for_good(const Job& job) const {
  const Trial& trial = state_->trials().at(static_cast<size_t>(job.trial));
  if (trial.failures == 0 || trial.failed_until != job.until) return false;
  return is_final(trial.exit_code) || trial.failures > state_->plan().options.search.max_restarts;
}

// A training that may be tried again is, at once: nothing else learns of the failure.
void SearchRunner::note_failure(const EndedJob& ended) {
  journal_->append(state_->fail(ended.job, ended.code, ended.why));
  const bool for_good = has_failed_for_good(ended.job);
  view_.failed(*state_, ended.job, !for_good);
  if (for_good) {
    ended_.push_back(ended);
  } else {
    start(ended.job);
  }
}

// With results in order the oldest training is waited for.
bool SearchRunner::take_result() {
  for (const Job& job : state_->running()) {
    const auto found = std::find_if(ended_.begin(), ended_.end(),
                                    [&](const EndedJob& ended) { return ended.job == job; });
    if (found != ended_.end()) {
      const EndedJob ended = *found;
      ended_.erase(found);
      take(ended);
      return true;
    }
    if (in_order()) return false;
  }
  return false;
}

// What fails in the same way each time has made as many updates each time. How far another training
// came depends on when it was killed: such a trial has those of its last report.
Report SearchRunner::failure_of(const Job& job) const {
  const Trial& trial = state_->trials().at(static_cast<size_t>(job.trial));
  const auto made = run_progress(trial_directory(setup_.directory, job.trial));
  return {.until = job.until,
          .step = is_final(trial.exit_code) ? made.updates : trial.updates(),
          .seconds = made.seconds};
}

void SearchRunner::take(const EndedJob& ended) {
  const Job& job = ended.job;
  if (has_failed_for_good(job)) return report(job, failure_of(job));
  const auto& metric = state_->plan().metric;
  const auto here = value_at(trial_directory(setup_.directory, job.trial), metric, job.until);
  if (!here && resumed_.contains(job.trial) &&
      trains_again(job,
                   "its metrics.jsonl has no validation after " + counted(job.until, "update"))) {
    return;
  }
  if (!here || !here->value) {
    return note_failure(
        {job, ended.code,
         here ? metric + " of its last validation is no number" : "it ended without a validation"});
  }
  if (here->made > job.until && ahead_.insert(job.trial).second) {
    log::warn("trial " + std::to_string(job.trial) + " has made " + counted(here->made, "update") +
              ", more than the journal knows of; it is compared by its value after " +
              with_thousands(job.until));
  }
  report(
      job,
      {.until = job.until, .step = here->updates, .value = here->value, .seconds = here->seconds});
}

// A checkpoint that is damaged is no worse than one that is gone. Once for a job: what comes to
// grief again has another reason, and counts as a failure.
bool SearchRunner::trains_again(const Job& job, const std::string& why) {
  if (why.empty() || !trained_again_.insert({job.trial, job.until}).second) return false;
  log::warn("trial " + std::to_string(job.trial) + " is trained again from its start: " + why);
  forget_run(trial_directory(setup_.directory, job.trial));
  start(job);
  return true;
}

void SearchRunner::report(const Job& job, const Report& report) {
  journal_->append(state_->report(job, report, clock()));
  view_.reported(*state_, job);
  tell_early_end(state_->trials().at(static_cast<size_t>(job.trial)));
  prune(/*at_end=*/false);
  output_.write(*state_);
}

// Checkpoints that no trial goes on from take the most room.
void SearchRunner::prune(bool at_end) {
  const auto best = state_->best();
  for (const auto& trial : state_->trials()) {
    const TrialState standing = state_->state_of(trial.id);
    const bool may_go_on =
        standing == TrialState::kRunning || (standing == TrialState::kWaiting && !at_end);
    if (may_go_on || best == trial.id || !pruned_.insert(trial.id).second) continue;
    std::error_code error;
    const fs::path checkpoints = trial_directory(setup_.directory, trial.id) / "checkpoints";
    fs::remove_all(checkpoints, error);
    if (error) log::warn("cannot remove " + checkpoints.string() + ": " + error.message());
  }
}

ExitCode SearchRunner::leave_interrupted() {
  pool_.stop();
  view_.finish();
  output_.write_page(*state_, "stopped");
  log::info("stopped; the same command goes on from there");
  return ExitCode::kInterrupted;
}

void SearchRunner::refuse_without_result() const {
  const auto& trials = state_->trials();
  if (trials.empty()) {
    throw Error(ExitCode::kUsage, "no trial began: search.max_hours is over",
                "raise it, and the same command goes on");
  }
  const Trial& last = trials.back();
  const bool has_own_code = is_final(last.exit_code) && last.exit_code != 0;
  const fs::path output = trial_directory(setup_.directory, last.id) / "output.txt";
  throw Error(has_own_code ? static_cast<ExitCode>(last.exit_code) : ExitCode::kPeerLost,
              "no trial of " + std::to_string(trials.size()) + " has a result; of the last: " +
                  (last.why.empty() ? "exit code " + std::to_string(last.exit_code) : last.why),
              output.string() + " says more");
}

ExitCode SearchRunner::finish() {
  view_.finish();
  const auto best = state_->best();
  if (!best) refuse_without_result();
  prune(/*at_end=*/true);
  output_.write(*state_);
  output_.write_page(*state_, "finished");
  const auto& trial = state_->trials().at(static_cast<size_t>(*best));
  log::info(std::string(is_time_up() ? "search.max_hours reached" : "finished") + ": " +
            counted(static_cast<int64_t>(state_->trials().size()), "trial") +
            ", the best is trial " + std::to_string(*best) + " with " +
            value_text(state_->plan(), trial.reports.back().value));
  log::info("  " + printable(state_->plan().space.text(trial.point), 4000));
  log::info("  page: " + (setup_.directory / "search.html").string());
  log::info("  its configuration: " + (setup_.directory / "best.toml").string());
  return ExitCode::kOk;
}

ExitCode SearchRunner::run() {
  const StopSignals signals;
  ignore_broken_pipes();  // to other hosts
  try {
    go_on_with_running();
    for (;;) {
      // Between two results a slot is filled: whether both were there at once must change nothing.
      do {
        fill_slots();
      } while (take_result());
      pool_.place([this](const Job& job, const Host& host) { return run_of(job, host); });
      view_.tick(*state_);
      if (signals.requested()) return leave_interrupted();
      if (state_->running().empty()) return finish();
      std::this_thread::sleep_for(setup_.tick);
      poll();
    }
  } catch (...) {
    pool_.stop();
    view_.finish();
    throw;
  }
}

}  // namespace stretto::search
