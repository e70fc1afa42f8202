#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "distributed/launch.h"

namespace stretto::distributed {

/// Least time that the processes of a job get to join each other. The failpoint `dist.join_floor`
/// takes it away, for tests.
inline constexpr double kLeastJoinSeconds = 60;

/// Lives while this process joins the others, which MPI waits for without an end: when it lives
/// longer than max(timeout_seconds, kLeastJoinSeconds) it ends the process with exit code 69 and
/// says which ranks have not come, as far as this host knows.
class JoinWatch {
 public:
  JoinWatch(const Launch& launch, double timeout_seconds);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void wait();

  Launch launch_;
  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool joined_ = false;
  std::thread thread_;
};

/// What `proc` (/proc) shows of the ranks of a PMIx job: "rank 1 (pid 4711) is stopped; ranks 2, 3
/// are not seen on this host". Empty without a name of the job.
///
/// @param job  PMIX_NAMESPACE, which mpirun and `srun --mpi=pmix` give all processes of a job
std::string ranks_that_are_missing(const std::filesystem::path& proc, const std::string& job,
                                   int size);

}  // namespace stretto::distributed
