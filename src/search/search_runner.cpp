#include "search/search_runner.h"

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "search/trial_folder.h"
#include "search/trial_results.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

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

// What fails in the same way each time has made as many updates each time. How far another training
// came depends on when it was killed: such a trial has those of its last report.
Report failure_of(const fs::path& folder, const Trial& trial, int64_t until) {
  const auto made = run_progress(folder);
  return {.until = until,
          .step = is_final(trial.exit_code) ? made.updates : trial.updates(),
          .seconds = made.seconds};
}

}  // namespace

SearchRunner::SearchRunner(RunnerSetup setup)
    : setup_(std::move(setup)),
      pool_(places_of(setup_), {.command = setup_.command,
                                .remote = {.shell = setup_.plan.options.search.remote_shell,
                                           .watcher = setup_.watcher},
                                .tick = setup_.tick}),
      driver_(setup_.directory, setup_.plan, setup_.points_place, setup_.accept_data),
      output_(setup_.directory, setup_.shown) {
  view_.opened(state());
}

fs::path SearchRunner::folder_of(TrialId trial) const {
  return trial_directory(setup_.directory, trial);
}

void SearchRunner::fill_slots() {
  while (state().running().size() < pool_.capacity()) {
    const auto job = driver_.next();
    if (!job) return;
    view_.began(state(), *job);
    start(*job);
  }
}

void SearchRunner::start(const Job& job) {
  pruned_.erase(job.trial);
  pool_.add(job, state().running());
}

TrialRun SearchRunner::run_of(const Job& job, const Host& host) {
  driver_.require_same_files(job);
  if (pool_.num_hosts() > 1) {
    log::info("trial " + std::to_string(job.trial) + " trains on " + host.shown());
  }
  const auto& plan = setup_.plan;
  const auto& point = state().trial(job.trial).point;
  const fs::path folder = folder_of(job.trial);
  resumed_.erase(job.trial);
  if (holds_checkpoints(folder)) {
    require_own_run(folder, experiment_of(plan, point));
    resumed_.insert(job.trial);
  }
  return {.config = plan.options.search.config,
          .overrides = overrides_of(plan, point),
          .directory = folder,
          .until = job.until,
          .threads = plan.options.search.slots_per_trial,
          .accept_data = setup_.accept_data};
}

void SearchRunner::poll() {
  for (const auto& ended : pool_.poll(state().running())) take(ended);
}

void SearchRunner::take(const EndedJob& ended) {
  if (ended.code == 0) return driver_.ended(ended.job);
  if (is_fault_of_machine(ended.code)) refuse(ended);
  if (ended.code == static_cast<int>(ExitCode::kBadData)) {
    refuse_changed_data(ended);
    if (trains_again(ended.job, damage_of_run(folder_of(ended.job.trial)))) return;
  }
  note_failure(ended.job, ended.code, ended.why);
}

// Every other trial would meet it too.
void SearchRunner::refuse(const EndedJob& ended) const {
  const fs::path output = folder_of(ended.job.trial) / "output.txt";
  throw Error(ExitCode::kIo,
              "trial " + std::to_string(ended.job.trial) + " cannot train: " +
                  (ended.why.empty() ? "its program does not start" : ended.why),
              "correct this, and the same command goes on; " + output.string() + " says more");
}

// It would count as the worst, though the data are to blame.
void SearchRunner::refuse_changed_data(const EndedJob& ended) const {
  if (ended.why.find(data::kDataHaveChanged) == std::string::npos) return;
  throw Error(ExitCode::kBadData,
              "trial " + std::to_string(ended.job.trial) + " cannot go on: " + ended.why,
              "put the files back as they were, and the same command goes on; with --accept-data "
              "it goes on with the files as they are");
}

// A training that may be tried again is, at once: nothing else learns of the failure.
void SearchRunner::note_failure(const Job& job, int code, const std::string& why) {
  const bool tried_again = driver_.fail(job, code, why);
  view_.failed(state(), job, tried_again);
  if (tried_again) start(job);
}

// A checkpoint that is damaged is no worse than one that is gone. Once for a job: what comes to
// grief again has another reason, and counts as a failure.
bool SearchRunner::trains_again(const Job& job, const std::string& why) {
  if (why.empty() || !trained_again_.insert({job.trial, job.until}).second) return false;
  log::warn("trial " + std::to_string(job.trial) + " is trained again from its start: " + why);
  forget_run(folder_of(job.trial));
  start(job);
  return true;
}

bool SearchRunner::take_result() {
  const bool in_order = state().plan().options.search.deterministic || pool_.capacity() == 1;
  const auto job = driver_.take_ended(in_order);
  if (!job) return false;
  if (driver_.has_failed_for_good(*job)) {
    report(*job, failure_of(folder_of(job->trial), state().trial(job->trial), job->until));
  } else {
    take_value(*job);
  }
  return true;
}

void SearchRunner::take_value(const Job& job) {
  const auto& metric = state().plan().metric;
  const auto here = value_at(folder_of(job.trial), metric, job.until);
  if (!here && resumed_.contains(job.trial) &&
      trains_again(job,
                   "its metrics.jsonl has no validation after " + counted(job.until, "update"))) {
    return;
  }
  if (!here || !here->value) {
    return note_failure(
        job, 0,
        here ? metric + " of its last validation is no number" : "it ended without a validation");
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

void SearchRunner::report(const Job& job, const Report& report) {
  driver_.report(job, report);
  view_.reported(state(), job);
  prune(/*at_end=*/false);
  output_.write(state());
}

// Checkpoints that no trial goes on from take the most room.
void SearchRunner::prune(bool at_end) {
  const auto best = state().best();
  for (const auto& trial : state().trials()) {
    const TrialState standing = state().state_of(trial.id);
    const bool may_go_on =
        standing == TrialState::kRunning || (standing == TrialState::kWaiting && !at_end);
    if (may_go_on || best == trial.id || !pruned_.insert(trial.id).second) continue;
    std::error_code error;
    const fs::path checkpoints = folder_of(trial.id) / "checkpoints";
    fs::remove_all(checkpoints, error);
    if (error) log::warn("cannot remove " + checkpoints.string() + ": " + error.message());
  }
}

ExitCode SearchRunner::leave_interrupted() {
  pool_.stop();
  view_.finish();
  output_.write_page(state(), "stopped");
  log::info("stopped; the same command goes on from there");
  return ExitCode::kInterrupted;
}

void SearchRunner::refuse_without_result() const {
  const auto& trials = state().trials();
  if (trials.empty()) {
    throw Error(ExitCode::kUsage, "no trial began: search.max_hours is over",
                "raise it, and the same command goes on");
  }
  const Trial& last = trials.back();
  const bool has_own_code = is_final(last.exit_code) && last.exit_code != 0;
  const fs::path output = folder_of(last.id) / "output.txt";
  throw Error(has_own_code ? static_cast<ExitCode>(last.exit_code) : ExitCode::kPeerLost,
              "no trial of " + std::to_string(trials.size()) + " has a result; of the last: " +
                  (last.why.empty() ? "exit code " + std::to_string(last.exit_code) : last.why),
              output.string() + " says more");
}

ExitCode SearchRunner::finish() {
  view_.finish();
  if (!state().best()) refuse_without_result();
  prune(/*at_end=*/true);
  output_.write(state());
  output_.write_page(state(), "finished");
  view_.ended(state(), setup_.directory, driver_.is_time_up());
  return ExitCode::kOk;
}

ExitCode SearchRunner::run() {
  const StopSignals signals;
  ignore_broken_pipes();  // to other hosts
  try {
    for (const Job& job : driver_.unfinished()) start(job);
    for (;;) {
      // Between two results a slot is filled: whether both were there at once must change nothing.
      do {
        fill_slots();
      } while (take_result());
      pool_.place([this](const Job& job, const Host& host) { return run_of(job, host); });
      view_.tick(state());
      if (signals.requested()) return leave_interrupted();
      if (state().running().empty()) return finish();
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
