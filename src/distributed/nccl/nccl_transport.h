#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <memory>
#include <span>

#include "distributed/process_group.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {

/// Memory, streams and events of CUDA that go with their owner.
class CudaStream {
 public:
  /// One that neither waits for the default stream nor is waited for by it.
  CudaStream();
  ~CudaStream();
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  CudaEvent();
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The same number of bytes on the GPU and, pinned, on the host.
class MirroredBytes {
 public:
  explicit MirroredBytes(size_t size);
  ~MirroredBytes();
  MirroredBytes(const MirroredBytes&) = delete;
  MirroredBytes& operator=(const MirroredBytes&) = delete;
  std::span<char> host() const { return {static_cast<char*>(host_), size_}; }
  char* device() const { return static_cast<char*>(device_); }

 private:
  size_t size_;
  void *host_ = nullptr, *device_ = nullptr;
};

/// Collectives between GPUs, on device memory. Work goes to a stream of this channel that runs
/// beside all others: it waits for what the stream of the buffer (`Buffer::stream`) was given
/// before, and for nothing that is queued elsewhere, so that gradients travel while backward
/// computes. It is waited for by short sleeps (`wait_until`) that also look at the heartbeat and at
/// NCCL's own errors.
///
/// Bytes travel in slots that are taken when the channel is made (`ByteRounds`): a rank whose
/// allocation has just failed can still say so.
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
  int device() const override { return device_; }
  void all_reduce(Buffer data) override;
  void reduce(Buffer data, int root) override;
  void broadcast(Buffer data, int root) override;
  void reduce_scatter(Buffer data, std::span<const int64_t> begins) override;
  void all_gather(Buffer data, std::span<const int64_t> begins) override;
  void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) override;
  std::vector<std::string> all_gather_bytes(const std::string& mine) override;
  void barrier() override;
  std::shared_ptr<Transport> duplicate() override;
  void check_peers() const override { watch_->check(); }
  /// Sends bytes once as all control messages go, since NCCL takes the memory for an operation's
  /// connections when it is first used. Collective.
  void rehearse();

 private:
  void check(ncclResult_t result, const char* what) const;
  ncclResult_t state(const char* what) const;
  /// Until the work is on the stream: a communicator that does not block may still hand it over.
  void settle(const char* what) const;
  void wait(const char* what);
  void begin(Buffer data) const;
  void follow(Buffer data) const;
  void gather_slots(size_t bytes);
  void use_device() const;

  ncclComm_t communicator_;
  int device_;
  std::shared_ptr<PeerWatch> watch_;
  int rank_ = 0, size_ = 1;
  CudaStream stream_;
  CudaEvent filled_, done_;
  std::unique_ptr<MirroredBytes> slots_;
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

}  // namespace stretto::distributed
