#include "cli/launch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/program_path.h"
#include "distributed/launch.h"
#include "distributed/plugin.h"
#include "launcher/local_job.h"

namespace stretto::cli {

int launch(const LaunchRequest& request) {
  require_own_start("--processes starts processes of its own",
                    "leave out --processes: mpirun, srun or torchrun decide how many there are");
  if (request.processes > 1 && request.dist.backend == "single") {
    throw Error(
        ExitCode::kUsage,
        "--processes " + std::to_string(request.processes) + ", but dist.backend is \"single\"",
        "leave one of them out");
  }
  if (!distributed::has_mpi()) {
    throw Error(ExitCode::kUsage, "this build knows no MPI, which several processes need",
                "Debian, Ubuntu: apt-get install libopenmpi-dev openmpi-bin, then `./dev build`");
  }
  launcher::LocalJob job{.command = {program_path().string()},
                         .processes = request.processes,
                         .restarts = request.restarts,
                         .timeout_seconds = request.dist.timeout_seconds,
                         .saved = request.saved};
  job.command.insert(job.command.end(), request.words.begin(), request.words.end());
  return launcher::run_local_job(job);
}

void require_one_process(const std::string& command, const std::string& advice) {
  if (distributed::detect_launch().kind == distributed::Launch::Kind::kSingle) return;
  throw Error(
      ExitCode::kUsage, command + " is one process, and was started as several",
      "cut the input (`split -n l/4 input.txt part.`) and start it once for each part, with "
      "run.threads=1" +
          (advice.empty() ? "" : "; " + advice));
}

void set_job_logging(int rank, bool quiet) {
  log::set_quiet(quiet || rank > 0);
  if (rank > 0) log::set_prefix("rank " + std::to_string(rank) + ": ");
}

void require_own_start(const std::string& what, const std::string& advice) {
  const auto launch = distributed::detect_launch();
  if (launch.kind == distributed::Launch::Kind::kSingle) return;
  throw Error(ExitCode::kUsage,
              what + ", but this one was started with others (" + launch.evidence + ")", advice);
}

}  // namespace stretto::cli
