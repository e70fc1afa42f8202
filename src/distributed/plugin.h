#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "distributed/process_group.h"
#include "distributed/watch/peer_watch.h"

/// Backends live in libraries of their own, opened when a job needs one, so that the program runs
/// and starts as fast on machines without MPI or NCCL.
namespace stretto::distributed {

/// Elements that go into one call of MPI, whose counts are ints.
inline constexpr int64_t kChunkElements = (int64_t{1} << 30) - 1;

/// How a channel over MPI works.
struct MpiSetup {
  /// What adds up an all-reduce: this project's direct exchange or the library.
  enum class Sums { kAuto, kDirect, kLibrary };

  int64_t chunk_elements = kChunkElements;  ///< of one call
  Sums sums = Sums::kAuto;
};

/// What libstretto_mpi.so exports as `stretto_mpi`.
struct MpiApi {
  /// Starts MPI and makes a channel over all processes. Once per process.
  /// Throws Error(kUsage) when MPI cannot be started or lacks MPI_THREAD_MULTIPLE.
  std::shared_ptr<Transport> (*open)(std::shared_ptr<PeerWatch> watch, const MpiSetup& setup);
  /// Ends MPI; every rank must come here, or it waits for ever.
  void (*finish)();
};
inline constexpr const char* kMpiSymbol = "stretto_mpi";

/// What libstretto_nccl.so exports as `stretto_nccl`.
struct NcclApi {
  /// A channel between the GPUs of all processes of `bootstrap`, which only carries words. Each
  /// takes one of those that it sees (`choose_devices`); the channel's device() tells which. Throws
  /// Error(kUsage) when this host has too few GPUs.
  std::shared_ptr<Transport> (*open)(const ProcessGroup& bootstrap, int local_rank,
                                     std::shared_ptr<PeerWatch> watch);
};
inline constexpr const char* kNcclSymbol = "stretto_nccl";

/// The table of a backend's library beside the program (or in ../lib).
/// Throws Error(kUsage) with the loader's reason and the remedy when it cannot be opened.
const MpiApi& mpi_api();
const NcclApi& nccl_api();
/// Whether MPI's library is there at all.
bool has_mpi();
/// The library that keeps unknown clients away from the mpirun of a job on one machine, beside the
/// program (or in ../lib); empty when it is not there.
std::filesystem::path mpirun_guard();

}  // namespace stretto::distributed
