#include "dist/join_watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "dist/agreement.h"
#include "dist/rank_report.h"

namespace stretto::dist {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One variable of a process, empty when it has none or is not ours to look at.
std::string variable_of(const std::string& environment, const std::string& name) {
  const std::string all = '\0' + environment, start = '\0' + name + '=';
  const size_t at = all.find(start);
  if (at == std::string::npos) return "";
  const size_t begin = at + start.size();
  return all.substr(begin, all.find('\0', begin) - begin);
}

// /proc/PID/stat is "PID (name) STATE …", and the name may hold anything.
bool is_stopped(const std::string& stat) {
  const size_t at = stat.rfind(')');
  return at != std::string::npos && at + 2 < stat.size() &&
         (stat[at + 2] == 'T' || stat[at + 2] == 't');
}

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
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(proc, failure)) {
    const std::string pid = entry.path().filename().string();
    if (!whole(pid)) continue;
    const std::string environment = bytes_of(entry.path() / "environ");
    if (variable_of(environment, "PMIX_NAMESPACE") != job) continue;
    const auto rank = whole(variable_of(environment, "PMIX_RANK"));
    if (!rank) continue;
    const bool stopped = is_stopped(bytes_of(entry.path() / "stat"));
    if (seen.count(*rank) == 0 || stopped) seen[*rank] = {pid, stopped};
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
  // Signals are for the thread that trains.
  sigset_t all_signals, before;
  ::sigfillset(&all_signals);
  ::pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  thread_ = std::thread([this] { wait(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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

}  // namespace stretto::dist
