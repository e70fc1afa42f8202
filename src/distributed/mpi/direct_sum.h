#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "distributed/process_group.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// What MPI says is wrong.
class MpiFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sums by direct exchange: part r of the buffer goes to rank r, which adds what arrives in order
/// of rank and, for an all-reduce, sends the sum to all others. Each rank sends and receives
/// 2 (n - 1) / n of the buffer, the least that is possible.
///
/// The buffer goes in chunks, several of which are on their way at once: while one is added up, the
/// next ones keep the line busy, and a line that works in both directions does. Between hosts that
/// is much faster than the library's sums (`benchmarks/overlap.py`); through shared memory, where
/// bytes are only copied, the library's are as good.
class DirectSum {
 public:
  DirectSum(MPI_Comm communicator, std::shared_ptr<PeerWatch> watch);

  /// Part r of `data` is [begins[r], begins[r + 1]). Afterwards part rank() holds the sum over
  /// ranks, and with `everywhere` every part does; else the others are unspecified.
  /// Throws MpiFailure, and as PeerWatch::check.
  void run(Buffer data, std::span<const int64_t> begins, bool everywhere);

 private:
  /// One chunk of each part, on its way.
  struct Chunk {
    enum class State { kSumming, kSpreading, kDone };

    int64_t number = 0;
    State state = State::kSumming;
    std::vector<MPI_Request> requests;
  };
  /// What run() was called with.
  struct Call {
    Buffer data;
    std::span<const int64_t> begins;
    bool everywhere = false;
    int64_t step = 0;  ///< elements of a chunk in one part
  };

  Buffer share(const Call& call, int64_t chunk, int rank) const;
  char* arrived(const Call& call, int64_t chunk, int rank);
  void start(const Call& call, Chunk& chunk);
  bool advance(const Call& call, Chunk& chunk);
  void add_up(const Call& call, const Chunk& chunk);
  void spread(const Call& call, Chunk& chunk);
  void send(Buffer from, int rank, int tag, Chunk& chunk);
  void receive(Buffer to, int rank, int tag, Chunk& chunk);

  MPI_Comm communicator_;
  std::shared_ptr<PeerWatch> watch_;
  int rank_ = 0, size_ = 1;
  std::vector<char> arrivals_;  // of the chunks on their way
};

}  // namespace stretto::distributed
