// libstretto_nccl.so: what the program opens when processes train on GPUs.

#include <cstring>

#include "base/error.h"
#include "base/system_info.h"
#include "distributed/cores.h"
#include "distributed/device_choice.h"
#include "distributed/nccl/nccl_transport.h"
#include "distributed/plugin.h"

namespace stretto::distributed {
namespace {

// NCCL too tells GPUs apart by their place on the bus.
std::string bus_id(int device) {
  char id[32] = "";
  check_cuda(cudaDeviceGetPCIBusId(id, sizeof id, device), "find a GPU on the bus");
  return id;
}

// A process that sees none says so, and all of them refuse the job together.
VisibleDevices visible_devices(int local_rank) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) count = 0;
  if (counted != cudaErrorNoDevice) check_cuda(counted, "count the GPUs");
  VisibleDevices mine{
      .machine = machine_id(), .host = host_name(), .local_rank = local_rank, .ids = {}};
  for (int device = 0; device < count; ++device) mine.ids.push_back(bus_id(device));
  return mine;
}

std::shared_ptr<Transport> open(const ProcessGroup& bootstrap, int local_rank,
                                std::shared_ptr<PeerWatch> watch) {
  const int device = choose_device(bootstrap, visible_devices(local_rank));
  check_cuda(cudaSetDevice(device), "choose a GPU");
  NcclMeeting meeting{.rank = bootstrap.rank(), .size = bootstrap.size()};
  if (bootstrap.is_root() && ncclGetUniqueId(&meeting.id) != ncclSuccess) {
    throw Error(ExitCode::kUsage, "NCCL cannot be started", "NCCL_DEBUG=INFO says more");
  }
  auto& id = meeting.id.internal;
  const auto ids = bootstrap.all_gather_bytes({id, id + sizeof id});
  std::memcpy(id, ids[0].data(), sizeof id);
  auto transport = std::make_shared<NcclTransport>(connect_gpus(meeting, *watch), device, watch);
  transport->rehearse();
  return transport;
}

}  // namespace
}  // namespace stretto::distributed

extern "C" __attribute__((visibility("default"))) const stretto::distributed::NcclApi stretto_nccl;
const stretto::distributed::NcclApi stretto_nccl{&stretto::distributed::open};
