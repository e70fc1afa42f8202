#include "launcher/local_job.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/child_process.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "distributed/plugin.h"
#include "distributed/rank_report.h"
#include "launcher/job_attempt.h"

namespace stretto::launcher {
namespace {

constexpr int kKilled = 128;  // an exit code is this and the signal

// After a signal that the ranks were told of: the exit code where that explains how each ended.
std::optional<int> outcome_of_signal(int signal,
                                     const std::vector<distributed::RankReport>& reports,
                                     const LocalJob& job) {
  const auto all = [&](auto&& ended_so) {
    return std::all_of(reports.begin(), reports.end(), ended_so);
  };
  const auto well = [](const distributed::RankReport& report) {
    return !distributed::has_failed(report);
  };
  if (!reports.empty() && all(well)) return distributed::job_exit_code(reports);
  // Before the process group exists, no rank has anything to save.
  const auto had_to = [&](const distributed::RankReport& report) {
    return well(report) || (!report.exit_code && (!report.joined || !job.saved));
  };
  if (!all(had_to)) return std::nullopt;
  if (!job.saved) {
    log::warn("stopped by a signal");
    return kKilled + signal;
  }
  log::warn("stopped by a signal while the processes started up; " + job.saved());
  return static_cast<int>(ExitCode::kInterrupted);
}

[[noreturn]] void refuse_mpirun(const JobAttempt& attempt, const LocalJob& job) {
  const int code = attempt.mpirun_code();
  std::fwrite(attempt.withheld().data(), 1, attempt.withheld().size(), stderr);
  if (code > kKilled) {
    throw Error(
        ExitCode::kPeerLost,
        "signal " + std::to_string(code - kKilled) + " ended mpirun before any process had started",
        "start again");
  }
  throw Error(
      ExitCode::kUsage,
      "mpirun left with exit code " + std::to_string(code) + " before any process had started",
      "try `mpirun -np " + std::to_string(job.processes) + " hostname`");
}

int outcome(const JobAttempt& attempt, const std::vector<distributed::RankReport>& reports,
            const LocalJob& job, int signal) {
  if (attempt.was_stopped()) {
    if (const auto code = outcome_of_signal(signal, reports, job)) return *code;
  }
  std::string text = distributed::failures_text(reports);
  if (attempt.was_stopped() && !text.empty() && job.saved) text += "\n" + job.saved();
  if (!text.empty()) {
    log::error(text);
    return distributed::job_exit_code(reports);
  }
  if (reports.empty() && attempt.mpirun_code() != 0) refuse_mpirun(attempt, job);
  return distributed::job_exit_code(reports);
}

// LD_PRELOAD is a list with blanks and colons between.
std::filesystem::path usable_guard() {
  const auto guard = distributed::mpirun_guard();
  const bool fits = guard.string().find_first_of(" :") == std::string::npos;
  if (!guard.empty() && fits) return guard;
  log::warn("mpirun listens on all addresses of this machine: " +
            (guard.empty() ? "libstretto_mpirun_guard.so is not beside the program"
                           : guard.string() + " has a blank or a colon in its path"));
  return {};
}

}  // namespace

std::vector<std::string> mpirun_words(const LocalJob& job, const MpirunFacts& facts) {
  std::vector<std::string> words{facts.mpirun, "-np", std::to_string(job.processes)};
  if (facts.root) words.push_back("--allow-run-as-root");
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  add({"--host", "localhost:" + std::to_string(job.processes)});
  add({"--oversubscribe", "--bind-to", "none", "--quiet"});
  add({"--mca", "pml", "ob1", "--mca", "btl", "self,vader"});
  if (!facts.reads_other_memory) add({"--mca", "btl_vader_single_copy_mechanism", "none"});
  add({"--mca", "orte_tmpdir_base", facts.folder.string()});
  if (!facts.shared.empty()) {
    add({"--mca", "btl_vader_backing_directory", facts.shared.string()});
    add({"--mca", "osc_sm_backing_directory", facts.shared.string()});
  }
  // Without it the first rank that fails takes the others down before they have spoken.
  add({"--enable-recovery"});
  add({"--output-filename", (facts.folder / "out").string()});
  add({"-x", "STRETTO_JOB_FOLDER=" + facts.folder.string()});
  if (facts.ignores_hangup) add({"-x", std::string(distributed::kNohupVariable) + "=1"});
  if (!facts.guard.empty()) add({"-x", "LD_PRELOAD=" + facts.preloaded});
  words.insert(words.end(), job.command.begin(), job.command.end());
  return words;
}

std::vector<std::string> mpirun_variables(const MpirunFacts& facts) {
  if (facts.guard.empty()) return {};
  const std::string more = facts.preloaded.empty() ? "" : ":" + facts.preloaded;
  return {"LD_PRELOAD=" + facts.guard.string() + more};
}

int run_local_job(const LocalJob& job) {
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) {
    throw Error(ExitCode::kUsage, "several processes need mpirun, which is not installed",
                "Debian, Ubuntu: apt-get install openmpi-bin; or leave out --processes");
  }
  const std::filesystem::path guard = usable_guard();
  const StopSignals signals(StopSignals::AtEnd::kKeep);
  for (int restart = 0;; ++restart) {
    JobAttempt attempt(job, {.mpirun = mpirun, .guard = guard}, signals);
    const auto reports = attempt.run();
    const int code = outcome(attempt, reports, job, signals.which());
    if (code != static_cast<int>(ExitCode::kPeerLost) || signals.requested()) return code;
    if (restart == job.restarts) return code;
    log::warn("a process was lost; restart " + std::to_string(restart + 1) + " of " +
              std::to_string(job.restarts) + ", from the last checkpoint");
  }
}

}  // namespace stretto::launcher
