// libstretto_nccl.so: what the program opens when processes train on GPUs.

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "dist/nccl/nccl_transport.h"
#include "dist/plugin.h"

namespace stretto::dist {
namespace {

int device_of(int local_rank) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "count the GPUs");
  if (local_rank < count) return local_rank;
  throw Error(ExitCode::kUsage,
              "this host has " + counted(count, "GPU") + ", and process " +
                  std::to_string(local_rank) + " of it has none",
              "start at most one process for each GPU");
}

std::shared_ptr<Transport> open(const ProcessGroup& bootstrap, int local_rank,
                                std::shared_ptr<PeerWatch> watch) {
  const int device = device_of(local_rank);
  check_cuda(cudaSetDevice(device), "choose a GPU");
  NcclMeeting meeting{.rank = bootstrap.rank(), .size = bootstrap.size()};
  if (bootstrap.is_root() && ncclGetUniqueId(&meeting.id) != ncclSuccess) {
    throw Error(ExitCode::kUsage, "NCCL cannot be started", "NCCL_DEBUG=INFO says more");
  }
  auto& id = meeting.id.internal;
  const auto ids = bootstrap.all_gather_bytes({id, id + sizeof id});
  std::memcpy(id, ids[0].data(), sizeof id);
  const ncclComm_t communicator = connect_gpus(meeting, *watch);
  return std::make_shared<NcclTransport>(communicator, device, std::move(watch));
}

}  // namespace
}  // namespace stretto::dist

extern "C" __attribute__((visibility("default"))) const stretto::dist::NcclApi stretto_nccl;
const stretto::dist::NcclApi stretto_nccl{&stretto::dist::open};
