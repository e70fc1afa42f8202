#include "launcher/rank_processes.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/other_process.h"
#include "distributed/launch.h"

namespace stretto::launcher {
namespace {

namespace fs = std::filesystem;

OtherProcess process_of(int64_t pid) {
  return OtherProcess("/proc/" + std::to_string(pid));
}

}  // namespace

std::vector<RankProcess> find_rank_processes(const fs::path& folder) {
  std::vector<RankProcess> found;
  for (const auto& process : process_folders("/proc")) {
    const OtherEnvironment environment(process);
    const char* job = environment.get("STRETTO_JOB_FOLDER");
    if (job == nullptr || folder != job) continue;
    const int64_t pid = std::stoll(process.filename().string());
    try {
      const distributed::Launch launch = distributed::detect_launch(
          [&](const char* variable) { return environment.get(variable); });
      if (launch.kind != distributed::Launch::Kind::kSingle && is_alive(pid))
        found.push_back({launch.rank, pid});
    } catch (const Error&) {
      continue;  // variables that make no rank: it says so itself
    }
  }
  std::sort(found.begin(), found.end(),
            [](const RankProcess& a, const RankProcess& b) { return a.rank < b.rank; });
  return found;
}

bool is_alive(int64_t pid) {
  const char state = process_of(pid).state();
  return state != '\0' && state != 'Z' && state != 'X';
}

bool is_stopped(int64_t pid) {
  return process_of(pid).is_stopped();
}

}  // namespace stretto::launcher
