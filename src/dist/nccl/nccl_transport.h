#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <memory>

#include "dist/peer_watch.h"
#include "dist/process_group.h"

namespace stretto::dist {

/// Collectives between GPUs, on device memory. Work goes to a stream of this channel that waits for
/// what the default stream was given before, and is waited for by short sleeps (`wait_until`) that
/// also look at the heartbeat and at NCCL's own errors.
///
/// Parts of uneven length are grouped calls, one for each rank: NCCL's own reduce-scatter and
/// all-gather want equal parts.
class NcclTransport : public Transport {
 public:
  /// @param device  index of this process's GPU
  NcclTransport(ncclComm_t communicator, int device, std::shared_ptr<PeerWatch> watch);
  ~NcclTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "nccl"; }
  bool on_device() const override { return true; }
  void all_reduce(Buffer data) override;
  void reduce(Buffer data, int root) override;
  void broadcast(Buffer data, int root) override;
  void reduce_scatter(Buffer data, std::span<const int64_t> begins) override;
  void all_gather(Buffer data, std::span<const int64_t> begins) override;
  void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) override;
  /// The bytes travel through device memory.
  std::vector<std::string> all_gather_bytes(const std::string& mine) override;
  void barrier() override;
  std::shared_ptr<Transport> duplicate() override;
  void check_peers() const override { watch_->check(); }

 private:
  void check(ncclResult_t result, const char* what) const;
  void wait(const char* what);
  void use_device() const;

  ncclComm_t communicator_;
  int device_;
  std::shared_ptr<PeerWatch> watch_;
  int rank_ = 0, size_ = 1;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

/// Connects the GPUs of `size` processes that share `id`. Non-blocking, so that the heartbeat
/// notices a rank that never comes. Throws Error(kUsage) with NCCL's reason, Error(kPeerLost).
struct NcclMeeting {
  ncclUniqueId id{};
  int rank = 0, size = 1;
};
ncclComm_t connect_gpus(const NcclMeeting& meeting, const PeerWatch& watch);

/// Throws Error(kUsage) with CUDA's reason unless `result` is success.
void check_cuda(cudaError_t result, const char* what);

}  // namespace stretto::dist
