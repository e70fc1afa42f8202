#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stretto::launcher {

/// Several processes of one program on this machine, started by mpirun.
struct LocalJob {
  std::vector<std::string> command;  ///< program and words of each process
  int processes = 2;
  int restarts = 0;             ///< times to start again after a process was lost or killed
  double timeout_seconds = 60;  ///< dist.timeout_seconds, for `join_seconds`
  /// What there is to go on from, as a sentence, for when the job was stopped before it had saved.
  /// Empty for a job that saves nothing.
  std::function<std::string()> saved = {};
};

/// What the words of mpirun depend on besides the job.
struct MpirunFacts {
  std::string mpirun;            ///< path
  std::filesystem::path folder;  ///< of the job, for reports and output of ranks
  std::filesystem::path shared;  ///< for memory that ranks share; empty = where MPI likes
  std::filesystem::path guard;   ///< the library of `mpirun_guard()`; empty = none
  std::string preloaded;         ///< LD_PRELOAD of this process, which is for the ranks too
  bool root = false;
  bool reads_other_memory = true;  ///< whether processes may copy from each other directly
  bool ignores_hangup = false;     ///< `nohup`, which is for the ranks too
};

/// The command line that works on one machine, and stays on it in an allocation of several: more
/// processes than cores are let through, root too, shared memory only, no process bound to a core.
/// What mpirun keeps in files lies in the job's folders and goes with them. Failed ranks do not
/// take the others down before those have said what they saw: that is for `run_local_job`.
std::vector<std::string> mpirun_words(const LocalJob& job, const MpirunFacts& facts);
/// "NAME=value" of what mpirun itself gets besides: the guard, which its ranks do not get.
std::vector<std::string> mpirun_variables(const MpirunFacts& facts);

/// Runs the job to its end and returns its exit code (`job_exit_code`). Prints every rank's failure
/// once, root cause first. SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless `nohup` had it ignored) go
/// on to all ranks, which save and leave with 75; a rank that ends without having said so has
/// failed (69), unless the group did not stand yet. A job that saves nothing leaves with 128 + the
/// signal. A rank that does not leave within 10 s of the others' failure is ended by force, and so
/// is an mpirun that does not end when its ranks have, see `JobAttempt`. After 69, or when a rank
/// was killed, the job is started again up to `restarts` times, when nothing of it lives any more.
///
/// Throws Error(kUsage) with a remedy when there is no mpirun, Error(kIo) when TMPDIR is no folder.
int run_local_job(const LocalJob& job);

}  // namespace stretto::launcher
