#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stretto::launcher {

/// A rank of a job on this machine that may not have said anything yet.
struct RankProcess {
  int rank = 0;
  int64_t pid = 0;
};

/// The living processes of a launched job, in order of rank: those in whose environment
/// STRETTO_JOB_FOLDER is `folder`, beside a launcher's rank. Reads /proc; processes of other users
/// are not seen.
std::vector<RankProcess> find_rank_processes(const std::filesystem::path& folder);

/// False for a process that has ended, even if its exit code has not been asked for yet.
bool is_alive(int64_t pid);
/// True for a process that is stopped (SIGSTOP, a debugger).
bool is_stopped(int64_t pid);

}  // namespace stretto::launcher
