#pragma once

#include <memory>
#include <string>

#include "distributed/launch.h"
#include "distributed/process_group.h"

namespace stretto::distributed {

/// Where processes that torchrun or a script started meet.
struct RendezvousPlace {
  int rank = 0, size = 1;
  std::string address;  ///< of rank 0
  int port = 0;
  std::string token;          ///< shared secret; empty is allowed on one host alone
  double wait_seconds = 300;  ///< for the slowest process to start
  int local_size = 0;         ///< processes on this host; 0 = not known

  /// All processes are on one host: there are as many here as in all, or nobody counted those here
  /// and the address is a loopback address (`localhost` is one, another name is not).
  bool one_host() const;
  /// Where rank 0 is met: `address`, and on one host a loopback address whatever that is.
  std::string meeting_address() const;
};

/// MASTER_ADDR, MASTER_PORT, LOCAL_WORLD_SIZE and STRETTO_RENDEZVOUS_TOKEN of this process.
RendezvousPlace rendezvous_place(const Launch& launch);

/// A group over TCP that can only gather bytes and meet: enough to bring NCCL and the heartbeat
/// up. Rank 0 listens, on loopback when all are on one host, else on all addresses: what
/// MASTER_ADDR means may be no address of its own (a service, NAT) or one that others cannot reach.
/// Each rank says a hello of fixed length with the token, within 5 s of connecting, or is dropped.
/// Any number may come at once, and all are heard side by side; beyond 256 that have not spoken the
/// one that has been silent for longest is dropped. A rank that is dropped comes again.
///
/// Throws Error(kUnsafe) for more than one host without a token, Error(kIo) when the
/// port is taken, Error(kPeerLost) naming the ranks that did not come in time.
std::shared_ptr<Transport> meet(const RendezvousPlace& place);

}  // namespace stretto::distributed
