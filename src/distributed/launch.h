#pragma once

#include <functional>
#include <string>

namespace stretto::distributed {

/// What started this process, and what it said about the others, from environment variables.
struct Launch {
  enum class Kind {
    kSingle,      ///< nothing: one process
    kMpi,         ///< mpirun, or srun with an MPI: rank and size are known for sure only to MPI
    kRendezvous,  ///< torchrun or a script: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  };
  Kind kind = Kind::kSingle;
  int rank = 0, size = 1;
  int local_rank = 0;          ///< among the processes of this host: which GPU to take
  std::string master_address;  ///< rendezvous
  int master_port = 0;         ///< rendezvous
  std::string evidence;        ///< "OMPI_COMM_WORLD_SIZE=4", for messages
};

/// Reads a variable; null when it is not set.
using Environment = std::function<const char*(const char* name)>;

/// In this order: Open MPI's and then PMI's variables (mpirun, srun --mpi=…); RANK and WORLD_SIZE;
/// a Slurm step of more than one task. STRETTO_LAUNCHER = none | mpi | rendezvous decides instead,
/// for the day on which a variable was left behind. Needs no MPI. Throws Error(kUsage) when the
/// variables contradict each other or some are missing.
Launch detect_launch(const Environment& environment);
Launch detect_launch();  ///< of this process

/// Seconds that the processes of a job have to find each other: `timeout_seconds`, at least 60, for
/// programs are slow to load from a shared disk; STRETTO_JOIN_SECONDS instead where it is set.
/// Throws Error(kUsage) when that is no number.
double join_seconds(double timeout_seconds, const Environment& environment);
double join_seconds(double timeout_seconds);  ///< of this process

}  // namespace stretto::distributed
