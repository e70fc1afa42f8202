#include "dist/local_job.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "dist/child_process.h"
#include "dist/job_attempt.h"
#include "dist/rank_report.h"

namespace stretto::dist {
namespace {

int outcome(const JobAttempt& attempt, const std::vector<RankReport>& reports,
            const LocalJob& job) {
  if (attempt.was_stopped()) {
    // A rank that was still starting up had nothing to save.
    const bool only_stopped = std::all_of(reports.begin(), reports.end(), [](const auto& report) {
      return !report.exit_code || !has_failed(report);
    });
    if (only_stopped) return static_cast<int>(ExitCode::kInterrupted);
  }
  const std::string text = failures_text(reports);
  if (!text.empty()) {
    log::error(text);
    return job_exit_code(reports);
  }
  if (reports.empty() && attempt.mpirun_code() != 0) {
    std::fwrite(attempt.withheld().data(), 1, attempt.withheld().size(), stderr);
    throw Error(ExitCode::kUsage,
                "mpirun left with exit code " + std::to_string(attempt.mpirun_code()) +
                    " before any process had started",
                "try `mpirun -np " + std::to_string(job.processes) + " hostname`");
  }
  return job_exit_code(reports);
}

}  // namespace

std::vector<std::string> mpirun_words(const LocalJob& job, const MpirunFacts& facts) {
  std::vector<std::string> words{facts.mpirun, "-np", std::to_string(job.processes)};
  if (facts.root) words.push_back("--allow-run-as-root");
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  add({"--oversubscribe", "--bind-to", "none", "--quiet"});
  add({"--mca", "pml", "ob1", "--mca", "btl", "self,vader"});
  if (!facts.reads_other_memory) add({"--mca", "btl_vader_single_copy_mechanism", "none"});
  // Without it the first rank that fails takes the others down before they have spoken.
  add({"--enable-recovery"});
  add({"--output-filename", (facts.folder / "out").string()});
  add({"-x", "STRETTO_JOB_FOLDER=" + facts.folder.string()});
  words.insert(words.end(), job.command.begin(), job.command.end());
  return words;
}

int run_local_job(const LocalJob& job) {
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) {
    throw Error(ExitCode::kUsage, "several processes need mpirun, which is not installed",
                "Debian, Ubuntu: apt-get install openmpi-bin; or leave out --processes");
  }
  const StopSignals signals;
  for (int restart = 0;; ++restart) {
    JobAttempt attempt(job, mpirun, signals);
    const auto reports = attempt.run();
    const int code = outcome(attempt, reports, job);
    if (code != static_cast<int>(ExitCode::kPeerLost) || signals.requested()) return code;
    if (restart == job.restarts) return code;
    log::warn("a process was lost; restart " + std::to_string(restart + 1) + " of " +
              std::to_string(job.restarts) + ", from the last checkpoint");
  }
}

}  // namespace stretto::dist
