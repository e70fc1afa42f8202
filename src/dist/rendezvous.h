#pragma once

#include <memory>
#include <string>

#include "dist/launch.h"
#include "dist/process_group.h"

namespace stretto::dist {

/// Where processes that torchrun or a script started meet.
struct RendezvousPlace {
  int rank = 0, size = 1;
  std::string address;  ///< of rank 0
  int port = 0;
  std::string token;          ///< shared secret; empty is allowed on loopback alone
  double wait_seconds = 300;  ///< for the slowest process to start
};

/// MASTER_ADDR, MASTER_PORT and STRETTO_RENDEZVOUS_TOKEN of this process.
RendezvousPlace rendezvous_place(const Launch& launch);

/// A group over TCP that can only gather bytes and meet: enough to bring NCCL and the heartbeat
/// up. Rank 0 listens; each rank says a hello of fixed length with the token, within 5 s of
/// connecting, or is dropped.
///
/// Throws Error(kUnsafe) for an address other than loopback without a token, Error(kIo) when the
/// port is taken, Error(kPeerLost) naming the ranks that did not come in time.
std::shared_ptr<Transport> meet(const RendezvousPlace& place);

}  // namespace stretto::dist
