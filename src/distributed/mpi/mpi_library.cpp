// libstretto_mpi.so: what the program opens when it was started by mpirun or srun.

#include "base/error.h"
#include "distributed/mpi/mpi_transport.h"
#include "distributed/plugin.h"

namespace stretto::distributed {
namespace {

// Whether some ranks share no memory with others.
bool spans_hosts() {
  MPI_Comm here = MPI_COMM_NULL;
  int local = 1, all = 1;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return false;
  }
  MPI_Comm_size(here, &local);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_free(&here);
  return local < all;
}

std::shared_ptr<Transport> open(std::shared_ptr<PeerWatch> watch, const MpiSetup& setup) {
  int provided = MPI_THREAD_SINGLE, initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    MPI_Query_thread(&provided);
  } else if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
    throw Error(ExitCode::kUsage, "MPI cannot be started",
                "start with the mpirun of the MPI that Stretto was built with");
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    throw Error(ExitCode::kUsage, "this MPI does not let several threads communicate",
                "install an MPI with MPI_THREAD_MULTIPLE, such as Open MPI 4");
  }
  return std::make_shared<MpiTransport>(MPI_COMM_WORLD, std::move(watch), setup, spans_hosts());
}

void finish() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

}  // namespace
}  // namespace stretto::distributed

extern "C" __attribute__((visibility("default"))) const stretto::distributed::MpiApi stretto_mpi;
const stretto::distributed::MpiApi stretto_mpi{&stretto::distributed::open,
                                               &stretto::distributed::finish};
