#include "distributed/watch/join_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/other_process.h"
#include "base/signals.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "distributed/rank_report.h"

namespace stretto::distributed {
namespace {

namespace fs = std::filesystem;

std::optional<int> whole(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// Processes of one rank: a shell around the program has the same variables.
struct Seen {
  std::string pid;
  bool stopped = false;
};

std::map<int, Seen> seen_ranks(const fs::path& proc, const std::string& job) {
  std::map<int, Seen> seen;
  for (const auto& folder : process_folders(proc)) {
    const OtherEnvironment environment(folder);
    const char* its_job = environment.get("PMIX_NAMESPACE");
    const char* its_rank = environment.get("PMIX_RANK");
    if (its_job == nullptr || its_rank == nullptr || its_job != job) continue;
    const auto rank = whole(its_rank);
    if (!rank) continue;
    const OtherProcess process(folder);
    const bool stopped = process.is_stopped();
    if (seen.count(*rank) == 0 || stopped) seen[*rank] = {process.pid(), stopped};
  }
  return seen;
}

}  // namespace

std::string ranks_that_are_missing(const fs::path& proc, const std::string& job, int size) {
  if (job.empty()) return "";
  const auto seen = seen_ranks(proc, job);
  std::vector<std::string> parts;
  std::vector<int> absent;
  for (int rank = 0; rank < size; ++rank) {
    const auto found = seen.find(rank);
    if (found == seen.end()) {
      absent.push_back(rank);
    } else if (found->second.stopped) {
      parts.push_back("rank " + std::to_string(rank) + " (pid " + found->second.pid +
                      ") is stopped");
    }
  }
  if (!absent.empty()) {
    parts.push_back((absent.size() == 1 ? "rank " : "ranks ") + rank_list(absent) +
                    (absent.size() == 1 ? " is" : " are") + " not seen on this host");
  }
  if (parts.empty()) parts.emplace_back("all are there, and none is stopped");
  return join(parts, "; ");
}

JoinWatch::JoinWatch(const Launch& launch, double timeout_seconds)
    : launch_(launch),
      seconds_(failpoint("dist.join_floor") != 0 ? timeout_seconds
                                                 : std::max(timeout_seconds, kLeastJoinSeconds)) {
  const SignalsBlocked blocked;  // signals are for the thread that trains
  thread_ = std::thread([this] { wait(); });
}

JoinWatch::~JoinWatch() {
  {
    const std::lock_guard lock(mutex_);
    joined_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void JoinWatch::wait() {
  std::unique_lock lock(mutex_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds_);
  if (changed_.wait_until(lock, end, [this] { return joined_; })) return;
  const char* job = std::getenv("PMIX_NAMESPACE");
  const std::string missing =
      ranks_that_are_missing("/proc", job == nullptr ? "" : job, launch_.size);
  const Error error(
      ExitCode::kPeerLost,
      "rank " + std::to_string(launch_.rank) + " (host " + host_name() + ", pid " +
          std::to_string(::getpid()) + ") waited " + fixed(seconds_, seconds_ < 10 ? 1 : 0) +
          " s for all " + std::to_string(launch_.size) + " processes of the job to join" +
          (missing.empty() ? "" : ": " + missing),
      "look at those processes; where starting takes longer, set dist.timeout_seconds higher");
  report_end(static_cast<int>(error.code()), error.message());
  log::error(error.message());
  ::_exit(static_cast<int>(error.code()));
}

}  // namespace stretto::distributed
