#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "distributed/mpi/direct_sum.h"
#include "distributed/plugin.h"
#include "distributed/process_group.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// Collectives of MPI. Each is started in its non-blocking form and then asked for until it is
/// done, with short sleeps between (`wait_until`): Open MPI's blocking forms spin on a core, and
/// never notice a lost peer.
///
/// Buffers of any length: what does not fit an int is cut into chunks of at most
/// `setup.chunk_elements`. Sums of half types are done in fp32 and rounded once per addition.
class MpiTransport : public Transport {
 public:
  /// `many_hosts`: some ranks share no memory with others, which decides what MpiSetup leaves open.
  MpiTransport(MPI_Comm communicator, std::shared_ptr<PeerWatch> watch, const MpiSetup& setup,
               bool many_hosts);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "mpi"; }
  /// By direct exchange where that is faster: between a few hosts, and not for a few bytes.
  void all_reduce(Buffer data) override;
  void reduce(Buffer data, int root) override;
  void broadcast(Buffer data, int root) override;
  /// By direct exchange.
  void reduce_scatter(Buffer data, std::span<const int64_t> begins) override;
  void all_gather(Buffer data, std::span<const int64_t> begins) override;
  void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) override;
  std::vector<std::string> all_gather_bytes(const std::string& mine) override;
  void barrier() override;
  std::shared_ptr<Transport> duplicate() override;
  void check_peers() const override { watch_->check(); }

 private:
  void check(int result, const char* what) const;
  [[noreturn]] void fail(const std::string& text, const char* what) const;
  bool sums_directly(Buffer data) const;
  void sum_directly(Buffer data, std::span<const int64_t> begins, bool everywhere,
                    const char* what);
  void wait(MPI_Request request, const char* what) const;
  void wait_all(std::vector<MPI_Request>& requests, const char* what) const;
  void check_begins(Buffer data, std::span<const int64_t> begins, const char* what) const;
  /// Calls chunk(first element's address, count) for each chunk of `data`.
  template <class Chunk>
  void in_chunks(Buffer data, Chunk&& chunk) const;

  // A few communicators live as long as the process: freeing one is collective too, and a process
  // that was told of a loss may not wait for others any more.
  MPI_Comm communicator_;
  std::shared_ptr<PeerWatch> watch_;
  MpiSetup setup_;
  bool many_hosts_;
  int rank_ = 0, size_ = 1;
  DirectSum direct_sum_;
};

/// MPI's name for an element, and the sum over it (our own for half types, as MPI has none).
MPI_Datatype mpi_type(Element element);
MPI_Op mpi_sum(Element element);
/// MPI's words for what a call returned.
std::string mpi_error(int code);

}  // namespace stretto::distributed
