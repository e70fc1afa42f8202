#include "dist/local_job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "dist/child_process.h"
#include "dist/rank_report.h"

namespace stretto::dist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kLastLines = 8;

/// A folder in which ranks leave their reports and output, removed at the end.
class JobFolder {
 public:
  JobFolder() {
    std::string name = (fs::temp_directory_path() / "stretto_job_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ExitCode::kIo, "cannot make a folder in " + fs::temp_directory_path().string(),
                  "set TMPDIR to a folder that can be written to");
    }
    path_ = name;
  }
  ~JobFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// mpirun keeps each rank's stderr in FOLDER/out/JOB/rank.R/stderr, with as many zeros before R as
// it likes.
fs::path output_of(const fs::path& folder, int rank) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "out", ignored)) {
    const std::string place = entry.path().parent_path().filename().string();
    if (entry.path().filename() != "stderr" || !place.starts_with("rank.")) continue;
    if (std::atoi(place.c_str() + 5) == rank) return entry.path();
  }
  return {};
}

std::vector<std::string> last_lines(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<int64_t>(file.tellg());
  const int64_t from = std::max<int64_t>(0, size - 16384);
  std::string text(static_cast<size_t>(size - from), '\0');
  file.seekg(from);
  file.read(text.data(), size - from);
  std::vector<std::string> lines;
  for (auto& line : split(text, '\n')) {
    // Of a line that was redrawn only what stood there last.
    if (const size_t redrawn = line.rfind('\r'); redrawn != std::string::npos) {
      line.erase(0, redrawn + 1);
    }
    if (!trim(line).empty()) lines.push_back(printable(line, 500));
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return lines;
}

bool has_reported_end(const fs::path& folder, int rank) {
  const auto reports = read_rank_reports(folder);
  return std::any_of(reports.begin(), reports.end(), [&](const RankReport& report) {
    return report.rank == rank && report.exit_code;
  });
}

/// One start of the job.
class Attempt {
 public:
  Attempt(const LocalJob& job, const std::string& mpirun, const StopSignals& signals)
      : signals_(signals) {
    mpirun_ = ChildProcess(mpirun_words(job, {.mpirun = mpirun,
                                              .folder = folder_.path(),
                                              .root = ::geteuid() == 0,
                                              .reads_other_memory = can_read_other_processes()}));
  }

  /// Waits for the end; the reports of all ranks that ever started.
  std::vector<RankReport> run();
  int mpirun_code() const { return code_; }
  bool was_stopped() const { return forwarded_; }

 private:
  void forward_signal();
  void look();
  void end_by_force();
  std::vector<RankReport> final_reports() const;

  const StopSignals& signals_;
  JobFolder folder_;
  ChildProcess mpirun_;
  int code_ = 0;
  bool forwarded_ = false;
  std::optional<Clock::time_point> failed_at_;  ///< when the first failure was seen
  std::vector<std::pair<int, double>> died_;    ///< rank and time of deaths without a report
  std::vector<int> forced_;                     ///< ranks that had to be ended
};

std::vector<RankReport> Attempt::run() {
  constexpr auto kPatience = 10s;
  while (true) {
    if (const auto code = mpirun_.poll()) {
      code_ = *code;
      break;
    }
    if (signals_.requested() && !forwarded_) forward_signal();
    look();
    if (failed_at_ && Clock::now() - *failed_at_ > kPatience) end_by_force();
    std::this_thread::sleep_for(50ms);
  }
  return final_reports();
}

// Not to mpirun, which would kill them. Ranks are processes of this machine.
void Attempt::forward_signal() {
  const auto reports = read_rank_reports(folder_.path());
  forwarded_ = true;
  for (const auto& report : reports) {
    if (!report.exit_code) ::kill(static_cast<pid_t>(report.pid), signals_.which());
  }
  if (reports.empty()) mpirun_.send(SIGTERM);  // nothing has begun
}

void Attempt::look() {
  for (const auto& report : read_rank_reports(folder_.path())) {
    bool bad = report.exit_code && has_failed(report);
    if (!report.exit_code && ::kill(static_cast<pid_t>(report.pid), 0) != 0) {
      if (has_reported_end(folder_.path(), report.rank))
        continue;  // just now: the next look counts
      bad = true;
      const bool known = std::any_of(died_.begin(), died_.end(),
                                     [&](const auto& one) { return one.first == report.rank; });
      if (!known) died_.emplace_back(report.rank, unix_seconds());
    }
    if (bad && !failed_at_) failed_at_ = Clock::now();
  }
}

void Attempt::end_by_force() {
  for (const auto& report : read_rank_reports(folder_.path())) {
    if (report.exit_code || ::kill(static_cast<pid_t>(report.pid), 0) != 0) continue;
    forced_.push_back(report.rank);
    ::kill(static_cast<pid_t>(report.pid), SIGKILL);  // works on stopped processes too
  }
  if (!mpirun_.wait_for(3s)) mpirun_.send(SIGTERM);
  if (!mpirun_.wait_for(3s)) mpirun_.send(SIGKILL);
}

std::vector<RankReport> Attempt::final_reports() const {
  auto reports = read_rank_reports(folder_.path());
  for (auto& report : reports) {
    if (!has_failed(report)) continue;
    report.last_lines = last_lines(output_of(folder_.path(), report.rank));
    if (report.exit_code) continue;
    report.ended = unix_seconds();
    for (const auto& [rank, time] : died_) {
      if (rank == report.rank) report.ended = time;
    }
    report.ended_by_force = std::find(forced_.begin(), forced_.end(), report.rank) != forced_.end();
  }
  return reports;
}

int outcome(const Attempt& attempt, const std::vector<RankReport>& reports, const LocalJob& job) {
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
    Attempt attempt(job, mpirun, signals);
    const auto reports = attempt.run();
    const int code = outcome(attempt, reports, job);
    if (code != static_cast<int>(ExitCode::kPeerLost) || signals.requested()) return code;
    if (restart == job.restarts) return code;
    log::warn("a process was lost; restart " + std::to_string(restart + 1) + " of " +
              std::to_string(job.restarts) + ", from the last checkpoint");
  }
}

}  // namespace stretto::dist
