#include "launcher/job_attempt.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/launch.h"
#include "launcher/rank_processes.h"

namespace stretto::launcher {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr size_t kLastLines = 8;
constexpr auto kTick = 50ms, kSearchInterval = 200ms;
constexpr auto kPatience = 10s;       // for ranks that know of the failure by themselves
constexpr auto kPatienceToJoin = 3s;  // for ranks that cannot
constexpr auto kGone = 300ms;         // a process has ended, and its report would be there by now
constexpr auto kNeverStarted = 3s;    // mpirun starts the ranks one after the other
constexpr auto kLastBreath = 5s;      // until a killed process is gone
constexpr int kLooks = 3;             // a debugger may halt a process for a moment
constexpr auto kMpirunAwake = 10s;    // for mpirun, when its ranks have ended
constexpr auto kMpirunStopped = 1s;   // the same, when it is stopped
constexpr auto kMpirunEnds = 3s;      // after it was asked to end

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

const distributed::RankReport* find_report(const std::vector<distributed::RankReport>& reports,
                                           int rank) {
  const auto found =
      std::find_if(reports.begin(), reports.end(),
                   [&](const distributed::RankReport& report) { return report.rank == rank; });
  return found == reports.end() ? nullptr : &*found;
}

bool has_reported_end(const fs::path& folder, int rank) {
  const auto reports = distributed::read_rank_reports(folder);
  const distributed::RankReport* report = find_report(reports, rank);
  return report != nullptr && report->exit_code;
}

ChildProcess start_mpirun(const LocalJob& job, MpirunFacts facts, const JobFolder& folder,
                          const JobFolder* shared) {
  const char* preloaded = std::getenv("LD_PRELOAD");
  facts.folder = folder.path();
  facts.shared = shared == nullptr ? fs::path() : shared->path();
  facts.preloaded = preloaded == nullptr ? "" : preloaded;
  facts.root = ::geteuid() == 0;
  facts.reads_other_memory = can_read_other_processes();
  facts.ignores_hangup = ignores_hangup();
  return ChildProcess(mpirun_words(job, facts), ChildProcess::Stderr::kPiped,
                      mpirun_variables(facts));
}

}  // namespace

JobAttempt::JobAttempt(const LocalJob& job, MpirunFacts facts, const StopSignals& signals)
    : signals_(signals),
      processes_(job.processes),
      join_limit_(std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(distributed::join_seconds(job.timeout_seconds)))),
      mpirun_(start_mpirun(job, std::move(facts), folder_, shared_.get())),
      noise_(mpirun_.pid()),
      all_joined_(job.processes == 1) {}  // one process has nobody to join

std::vector<distributed::RankReport> JobAttempt::run() {
  while (true) {
    pass_on(kTick);
    if (const auto code = mpirun_.poll()) {
      code_ = *code;
      break;
    }
    if (signals_.requested()) forward_signal();
    look();
    const auto patience = all_joined_ ? Clock::duration(kPatience) : kPatienceToJoin;
    const bool over =
        failed_at_ && (Clock::now() - *failed_at_ > patience || only_stopped_are_left());
    if (over || !never_joined_.empty()) {
      end_by_force();
    } else if (outlives_its_ranks()) {
      mpirun_.send(SIGCONT);
      if (!mpirun_ends_within(kMpirunEnds)) end_by_force();
    }
  }
  end_orphans();
  pass_on(0ms);
  const std::string rest = noise_.rest();
  std::fwrite(rest.data(), 1, rest.size(), stderr);
  return final_reports();
}

// What ranks and mpirun say, without what mpirun says about its own inside.
void JobAttempt::pass_on(std::chrono::milliseconds wait) {
  const auto deadline = Clock::now() + wait;
  for (auto left = wait; left >= 0ms;
       left = std::chrono::floor<std::chrono::milliseconds>(deadline - Clock::now())) {
    const std::string chunk = mpirun_.read_stderr(left);
    // What looks like the beginning of such words is shown when nothing follows: a progress line
    // may end so.
    const std::string shown = chunk.empty() ? noise_.rest() : noise_.pass(chunk);
    std::fwrite(shown.data(), 1, shown.size(), stderr);
  }
}

bool JobAttempt::mpirun_ends_within(std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!mpirun_.poll()) {
    if (Clock::now() > deadline) return false;
    pass_on(20ms);  // or it might wait for somebody to read
  }
  return true;
}

std::map<int, int64_t> JobAttempt::living_ranks() const {
  std::map<int, int64_t> living;
  for (const auto& process : find_rank_processes(folder_.path())) {
    living[process.rank] = process.pid;
  }
  // Where /proc hides what processes were started with, there are still those that reported.
  for (const auto& report : distributed::read_rank_reports(folder_.path())) {
    if (!report.exit_code && is_alive(report.pid)) living.try_emplace(report.rank, report.pid);
  }
  return living;
}

// Not to mpirun, which would kill them. Ranks are processes of this machine, and mpirun starts them
// one after the other: some may come later.
void JobAttempt::forward_signal() {
  const bool first = !forwarded_;
  const auto now = Clock::now();
  if (!first && (now < next_forward_ || told_.size() >= static_cast<size_t>(processes_))) return;
  next_forward_ = now + kSearchInterval;
  const auto living = living_ranks();
  for (const auto& [rank, pid] : living) {
    if (told_.insert(pid).second) ::kill(static_cast<pid_t>(pid), signals_.which());
  }
  if (!first) return;
  forwarded_ = true;
  forwarded_at_ = unix_seconds();
  if (living.empty() && distributed::read_rank_reports(folder_.path()).empty())
    end_mpirun();  // nothing began
}

void JobAttempt::end_mpirun() {
  ended_mpirun_ = true;
  mpirun_.send(SIGCONT);  // a stopped process hears nothing else
  mpirun_.send(ChildProcess::kEnd);
  if (!mpirun_ends_within(kMpirunEnds)) mpirun_.send(SIGKILL);
}

void JobAttempt::note_death(int rank) {
  died_.try_emplace(rank, unix_seconds());
  if (!failed_at_) failed_at_ = Clock::now();
}

void JobAttempt::look() {
  const auto reports = distributed::read_rank_reports(folder_.path());
  for (const auto& report : reports) {
    if (report.exit_code) {
      if (distributed::has_failed(report) && !failed_at_) failed_at_ = Clock::now();
    } else if (!is_alive(report.pid) && !has_reported_end(folder_.path(), report.rank)) {
      note_death(report.rank);
    }
  }
  if (all_joined_) return;
  all_joined_ =
      reports.size() == static_cast<size_t>(processes_) &&
      std::all_of(reports.begin(), reports.end(), [](const auto& report) { return report.joined; });
  if (Clock::now() >= next_search_) look_for_silent(reports);
  if (!all_joined_ && !failed_at_ && Clock::now() - began_ > join_limit_) give_up_joining(reports);
}

void JobAttempt::look_for_silent(const std::vector<distributed::RankReport>& reports) {
  if (reports.size() == static_cast<size_t>(processes_)) return;
  const auto now = Clock::now();
  next_search_ = now + kSearchInterval;
  const auto living = living_ranks();
  if (reports.empty() && living.empty() && seen_.empty()) return;  // mpirun still starts up
  for (int rank = 0; rank < processes_; ++rank) {
    if (const auto one = living.find(rank); one != living.end()) seen_.insert(*one);
    if (living.contains(rank) || find_report(reports, rank) != nullptr) {
      absent_from_.erase(rank);
      continue;
    }
    const auto since = absent_from_.try_emplace(rank, now).first->second;
    if (now - since > (seen_.contains(rank) ? Clock::duration(kGone) : kNeverStarted)) {
      note_death(rank);
    }
  }
}

// Those whom the others wait for: ranks that never spoke, and those that are stopped. All that have
// not joined when neither tells them apart.
void JobAttempt::give_up_joining(const std::vector<distributed::RankReport>& reports) {
  std::vector<int> waiting;
  for (int rank = 0; rank < processes_; ++rank) {
    const distributed::RankReport* report = find_report(reports, rank);
    if (report == nullptr || is_stopped(report->pid)) {
      never_joined_.push_back(rank);
    } else if (!report->joined) {
      waiting.push_back(rank);
    }
  }
  if (never_joined_.empty()) never_joined_ = waiting;
  failed_at_ = Clock::now();
}

bool JobAttempt::only_stopped_are_left() {
  if (Clock::now() < next_look_) return false;
  next_look_ = Clock::now() + kSearchInterval;
  const auto living = living_ranks();
  const bool stopped =
      !living.empty() && std::all_of(living.begin(), living.end(),
                                     [](const auto& one) { return is_stopped(one.second); });
  looks_at_stopped_ = stopped ? looks_at_stopped_ + 1 : 0;
  return looks_at_stopped_ >= kLooks;
}

// Whatever mpirun waits for: with the last report all that the job had to do is done.
bool JobAttempt::outlives_its_ranks() {
  const auto now = Clock::now();
  if (now < next_look_at_end_) return false;
  next_look_at_end_ = now + kSearchInterval;
  const auto reports = distributed::read_rank_reports(folder_.path());
  const bool ended =
      reports.size() == static_cast<size_t>(processes_) &&
      std::all_of(reports.begin(), reports.end(), [](const auto& one) { return one.exit_code; });
  if (!ended) return false;
  if (!all_ended_) all_ended_ = now;
  const auto patience = is_stopped(mpirun_.pid()) ? Clock::duration(kMpirunStopped) : kMpirunAwake;
  return now - *all_ended_ > patience;
}

void JobAttempt::end_by_force() {
  for (const auto& [rank, pid] : living_ranks()) {
    const bool never =
        std::find(never_joined_.begin(), never_joined_.end(), rank) != never_joined_.end();
    const distributed::EndReason waited =
        all_joined_ ? distributed::EndReason::kHung : distributed::EndReason::kWaited;
    const distributed::EndReason late = is_stopped(pid) ? distributed::EndReason::kStopped : waited;
    end_reasons_.try_emplace(rank, never ? distributed::EndReason::kNeverJoined : late);
    seen_.try_emplace(rank, pid);
    ::kill(static_cast<pid_t>(pid), SIGKILL);  // works on stopped processes too
  }
  ended_mpirun_ = true;
  mpirun_.send(SIGCONT);
  if (!mpirun_ends_within(kMpirunEnds)) end_mpirun();
}

// Ranks outlive an mpirun that was killed, and for some seconds train on: beside the ones that a
// restart would start.
void JobAttempt::end_orphans() {
  constexpr int kKilled = 128;
  const auto deadline = Clock::now() + kLastBreath;
  bool orphans = code_ > kKilled && !ended_mpirun_;
  for (auto living = living_ranks(); !living.empty() && Clock::now() < deadline;
       living = living_ranks()) {
    orphans = true;
    for (const auto& [rank, pid] : living) ::kill(static_cast<pid_t>(pid), SIGKILL);
    std::this_thread::sleep_for(20ms);
  }
  if (!orphans) return;
  for (int rank = 0; rank < processes_; ++rank) {
    if (!died_.contains(rank)) end_reasons_.try_emplace(rank, distributed::EndReason::kOrphaned);
  }
}

std::vector<distributed::RankReport> JobAttempt::final_reports() const {
  auto reports = distributed::read_rank_reports(folder_.path());
  if (reports.empty() && seen_.empty()) return {};
  for (int rank = 0; rank < processes_; ++rank) {
    if (find_report(reports, rank) != nullptr) continue;
    const auto pid = seen_.find(rank);
    reports.push_back(
        {.rank = rank, .host = host_name(), .pid = pid == seen_.end() ? 0 : pid->second});
  }
  for (auto& report : reports) {
    if (!distributed::has_failed(report)) continue;
    report.last_lines = last_lines(output_of(folder_.path(), report.rank));
    if (report.exit_code) continue;
    const auto death = died_.find(report.rank);
    report.ended = death == died_.end() ? unix_seconds() : death->second;
    report.joined = report.joined || processes_ == 1;
    if (const auto end_reason = end_reasons_.find(report.rank); end_reason != end_reasons_.end()) {
      report.end_reason = end_reason->second;
    } else if (forwarded_ && report.ended >= forwarded_at_) {
      report.end_reason = distributed::EndReason::kUnsaved;
    }
    if (report.end_reason == distributed::EndReason::kNeverJoined) {
      const double seconds = std::chrono::duration<double>(join_limit_).count();
      report.message = "the processes of a job have " + fixed(seconds, 0) +
                       " s to find each other (dist.timeout_seconds, at least 60): is it stopped, "
                       "or is a disk slow?";
    }
  }
  return reports;
}

}  // namespace stretto::launcher
