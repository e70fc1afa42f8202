#include "distributed/make_group.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "distributed/agreement.h"
#include "distributed/failure.h"
#include "distributed/plugin.h"
#include "distributed/rank_report.h"
#include "distributed/rendezvous.h"
#include "distributed/watch/activity.h"
#include "distributed/watch/heartbeat.h"
#include "distributed/watch/join_watch.h"

namespace stretto::distributed {
namespace {

/// The job that this process belongs to: there is one for a process, as MPI is there once.
struct Job {
  ProcessGroup group;
  std::unique_ptr<Heartbeat> heartbeat;
  const MpiApi* mpi = nullptr;
};

std::unique_ptr<Job>& job() {
  static std::unique_ptr<Job> instance;
  return instance;
}

std::string ranks_text(const Launch& launch) {
  return launch.evidence + " says that this is one of " + counted(launch.size, "process");
}

void require_mpi_size(const ProcessGroup& group, const Launch& launch) {
  if (group.size() == launch.size) return;
  throw Error(ExitCode::kUsage,
              ranks_text(launch) + ", but MPI sees " + counted(group.size(), "process"),
              "start with the mpirun of the MPI that Stretto was built with, or with `srun "
              "--mpi=pmix`");
}

[[noreturn]] void end_now(int exit_code, const std::string& why) {
  if (job()->heartbeat) job()->heartbeat->say_goodbye(exit_code, why);
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(exit_code);
}

// All ranks are past their last collective: nothing is lost when MPI's end hangs.
void finish_mpi(int exit_code) {
  std::thread([exit_code] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    ::_exit(exit_code);
  }).detach();
  if (job()->mpi != nullptr) job()->mpi->finish();
}

}  // namespace

Backend choose_backend(const DistOptions& options, const Launch& launch, DeviceKind device) {
  using Kind = Launch::Kind;
  const bool gpu = device == DeviceKind::kCuda;
  if (options.backend == "nccl" && !gpu) {
    throw Error(ExitCode::kUsage,
                "dist.backend: \"nccl\" works between GPUs, and this run is on a CPU",
                "set dist.backend = \"auto\", or run.device = \"cuda\" on a machine that has GPUs");
  }
  if (options.backend == "single" && launch.size > 1) {
    throw Error(ExitCode::kUsage, ranks_text(launch) + ", but dist.backend is \"single\"",
                "leave dist.backend out, or start one process");
  }
  if (launch.kind == Kind::kSingle || options.backend == "single") return Backend::kSingle;
  if (options.backend == "mpi" && launch.kind == Kind::kRendezvous) {
    throw Error(ExitCode::kUsage, ranks_text(launch) + ", but dist.backend is \"mpi\"",
                "start the processes with `mpirun -np N stretto train …` or `srun --mpi=pmix`");
  }
  if (options.backend == "mpi" && gpu && launch.size > 1) {
    throw Error(ExitCode::kUsage,
                "dist.backend: \"mpi\" sums in host memory, and this run is on GPUs",
                "set dist.backend = \"nccl\": MPI then only starts the processes");
  }
  if (options.backend == "mpi") return Backend::kMpi;
  if (launch.size == 1) return Backend::kSingle;
  if (gpu) return Backend::kNccl;
  if (launch.kind == Kind::kMpi) return Backend::kMpi;
  throw Error(
      ExitCode::kUsage, ranks_text(launch) + ", but processes on CPUs talk by MPI",
      "start them with `mpirun -np N stretto train …`, or on one machine with `stretto train "
      "… --processes N`");
}

ProcessGroup make_process_group(const DistOptions& options, DeviceKind device) {
  if (job()) throw std::logic_error("[dist] make_process_group is called once per process");
  const Launch launch = detect_launch();
  const Backend backend = choose_backend(options, launch, device);
  if (backend == Backend::kSingle) return {};
  // Looked for before anybody waits for this rank.
  const NcclApi* nccl = backend == Backend::kNccl ? &nccl_api() : nullptr;

  auto next = std::make_unique<Job>();
  auto watch = std::make_shared<PeerWatch>();
  auto activity = std::make_shared<Activity>();
  std::optional<JoinWatch> join_watch;  // a rendezvous has a limit of its own
  if (launch.kind == Launch::Kind::kMpi) {
    next->mpi = &mpi_api();
    join_watch.emplace(launch, options.timeout_seconds);
    next->group = ProcessGroup(noted(next->mpi->open(watch, MpiSetup{}), activity));
    job() = std::move(next);  // from here on the process must end by `leave`
    require_mpi_size(job()->group, launch);
  } else {
    next->group = ProcessGroup(meet(rendezvous_place(launch)));
    job() = std::move(next);
  }
  // Others would not understand the words of the heartbeat, or meet in another library.
  require_agreement(job()->group, {{"program", kVersion},
                                   {"backend", backend == Backend::kNccl ? "nccl" : "mpi"}});
  if (job()->group.size() > 1) {
    job()->heartbeat =
        std::make_unique<Heartbeat>(job()->group, options.timeout_seconds, watch, activity);
  }
  join_watch.reset();
  if (nccl != nullptr) {
    const auto transport = nccl->open(job()->group, launch.local_rank, watch);
    job()->group = ProcessGroup(noted(transport, activity));
  }
  report_joined();
  return job()->group;
}

void watch_stalls(const DistOptions& options) {
  if (job() && job()->heartbeat) job()->heartbeat->watch_stalls(options.stall_seconds);
}

int leave(int exit_code, const std::string& why) {
  const auto code = static_cast<ExitCode>(exit_code);
  if (!job()) return exit_code;
  if (code != ExitCode::kOk && code != ExitCode::kInterrupted) end_now(exit_code, why);
  try {
    job()->group.barrier();
  } catch (const Error& error) {
    report_failure(failure_of(error));
    end_now(static_cast<int>(error.code()), error.what());
  }
  if (job()->heartbeat) job()->heartbeat->say_goodbye(exit_code, why);
  finish_mpi(exit_code);
  job().reset();
  return exit_code;
}

}  // namespace stretto::distributed
