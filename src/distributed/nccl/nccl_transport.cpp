#include "distributed/nccl/nccl_transport.h"

#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "distributed/byte_rounds.h"

namespace stretto::distributed {
namespace {

ncclDataType_t nccl_type(Element element) {
  switch (element) {
    case Element::kF32:
      return ncclFloat32;
    case Element::kF64:
      return ncclFloat64;
    case Element::kBf16:
      return ncclBfloat16;
    case Element::kF16:
      return ncclFloat16;
    case Element::kI64:
      return ncclInt64;
    case Element::kByte:
      return ncclUint8;
  }
  throw std::invalid_argument("[nccl] unknown element type");
}

char* at(Buffer data, int64_t element) {
  return static_cast<char*>(data.data) + static_cast<size_t>(element) * size_of(data.element);
}

}  // namespace

void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw Error(ExitCode::kUsage,
              std::string("CUDA failed to ") + what + ": " + cudaGetErrorString(result),
              "`stretto doctor` shows the GPUs of this machine");
}

ncclComm_t connect_gpus(const NcclMeeting& meeting, const PeerWatch& watch) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t communicator = nullptr;
  ncclResult_t state =
      ncclCommInitRankConfig(&communicator, meeting.size, meeting.id, meeting.rank, &config);
  if (state == ncclInProgress) {
    wait_until(watch, [&] {
      const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
      if (asked != ncclSuccess) state = asked;
      return state != ncclInProgress;
    });
  }
  if (state == ncclSuccess) return communicator;
  throw Error(ExitCode::kUsage,
              std::string("NCCL cannot connect the GPUs: ") + ncclGetErrorString(state),
              "NCCL_DEBUG=INFO says more");
}

// Streams and events belong to the device that is the thread's when they are made.
CudaStream::CudaStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream");
}

CudaStream::~CudaStream() {
  cudaStreamDestroy(stream_);
}

CudaEvent::CudaEvent() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "make an event");
}

CudaEvent::~CudaEvent() {
  cudaEventDestroy(event_);
}

MirroredBytes::MirroredBytes(size_t size) : size_(size) {
  check_cuda(cudaMalloc(&device_, size), "allocate");
  if (const cudaError_t result = cudaHostAlloc(&host_, size, cudaHostAllocPortable);
      result != cudaSuccess) {
    cudaFree(device_);
    check_cuda(result, "pin host memory");
  }
}

MirroredBytes::~MirroredBytes() {
  cudaFreeHost(host_);
  cudaFree(device_);
}

NcclTransport::NcclTransport(ncclComm_t communicator, int device, std::shared_ptr<PeerWatch> watch)
    : communicator_(communicator), device_(device), watch_(std::move(watch)) {
  use_device();
  check(ncclCommUserRank(communicator_, &rank_), "rank");
  check(ncclCommCount(communicator_, &size_), "size");
  slots_ =
      std::make_unique<MirroredBytes>(ByteRounds::capacity_for(size_) * static_cast<size_t>(size_));
}

NcclTransport::~NcclTransport() {
  // Aborting never waits for other ranks, which may be gone.
  ncclCommAbort(communicator_);
}

void NcclTransport::use_device() const {
  check_cuda(cudaSetDevice(device_), "choose a GPU");
}

void NcclTransport::check(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess || result == ncclInProgress) return;
  watch_->wait_for_news();
  throw Error(ExitCode::kPeerLost,
              "rank " + std::to_string(rank_) + ": NCCL failed in " + what + ": " +
                  ncclGetErrorString(result),
              std::string(kStartAgain) + "; NCCL_DEBUG=INFO says more");
}

ncclResult_t NcclTransport::state(const char* what) const {
  ncclResult_t now = ncclSuccess;
  check(ncclCommGetAsyncError(communicator_, &now), what);
  check(now, what);
  return now;
}

void NcclTransport::settle(const char* what) const {
  wait_until(*watch_, [&] { return state(what) == ncclSuccess; });
}

// Once the host has seen the end, whatever it queues on any stream comes after it.
void NcclTransport::wait(const char* what) {
  settle(what);
  check_cuda(cudaEventRecord(done_.get(), stream_.get()), "record an event");
  wait_until(*watch_, [&] {
    state(what);
    const cudaError_t ready = cudaEventQuery(done_.get());
    if (ready == cudaErrorNotReady) {
      cudaGetLastError();  // CUDA keeps it, and libtorch's next launch would take it for its own
      return false;
    }
    check_cuda(ready, what);
    return true;
  });
}

// Whoever filled the buffer may still be at it, on a stream that this channel's does not wait for.
void NcclTransport::follow(Buffer data) const {
  check_cuda(cudaEventRecord(filled_.get(), static_cast<cudaStream_t>(data.stream)),
             "record an event");
  check_cuda(cudaStreamWaitEvent(stream_.get(), filled_.get(), 0), "wait for an event");
}

void NcclTransport::begin(Buffer data) const {
  use_device();
  follow(data);
}

void NcclTransport::all_reduce(Buffer data) {
  begin(data);
  check(ncclAllReduce(data.data, data.data, static_cast<size_t>(data.count),
                      nccl_type(data.element), ncclSum, communicator_, stream_.get()),
        "all_reduce");
  wait("all_reduce");
}

void NcclTransport::reduce(Buffer data, int root) {
  begin(data);
  check(ncclReduce(data.data, data.data, static_cast<size_t>(data.count), nccl_type(data.element),
                   ncclSum, root, communicator_, stream_.get()),
        "reduce");
  wait("reduce");
}

void NcclTransport::broadcast(Buffer data, int root) {
  begin(data);
  check(ncclBroadcast(data.data, data.data, static_cast<size_t>(data.count),
                      nccl_type(data.element), root, communicator_, stream_.get()),
        "broadcast");
  wait("broadcast");
}

void NcclTransport::reduce_scatter(Buffer data, std::span<const int64_t> begins) {
  begin(data);
  check(ncclGroupStart(), "reduce_scatter");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    char* part = at(data, first);
    check(ncclReduce(part, part, static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                     nccl_type(data.element), ncclSum, r, communicator_, stream_.get()),
          "reduce_scatter");
  }
  check(ncclGroupEnd(), "reduce_scatter");
  wait("reduce_scatter");
}

void NcclTransport::all_gather(Buffer data, std::span<const int64_t> begins) {
  begin(data);
  check(ncclGroupStart(), "all_gather");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    char* part = at(data, first);
    check(ncclBroadcast(part, part, static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                        nccl_type(data.element), r, communicator_, stream_.get()),
          "all_gather");
  }
  check(ncclGroupEnd(), "all_gather");
  wait("all_gather");
}

void NcclTransport::exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) {
  const auto own = static_cast<size_t>(rank_);
  const int64_t mine = begins[own + 1] - begins[own];
  if (receive.count < mine * size_ || receive.element != send.element) {
    throw std::invalid_argument("[nccl] exchange: receive is too short or of another type");
  }
  begin(send);
  if (receive.stream != send.stream) follow(receive);
  const ncclDataType_t type = nccl_type(send.element);
  check(ncclGroupStart(), "exchange");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    check(ncclSend(at(send, first), static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                   type, r, communicator_, stream_.get()),
          "exchange");
    check(ncclRecv(at(receive, mine * r), static_cast<size_t>(mine), type, r, communicator_,
                   stream_.get()),
          "exchange");
  }
  check(ncclGroupEnd(), "exchange");
  wait("exchange");
}

// One slot of each rank. What copies to and from the host goes in line with the collective.
void NcclTransport::gather_slots(size_t bytes) {
  constexpr const char* kWhat = "all_gather_bytes";
  char *const host = slots_->host().data(), *const device = slots_->device();
  const size_t own = bytes * static_cast<size_t>(rank_);
  check_cuda(
      cudaMemcpyAsync(device + own, host + own, bytes, cudaMemcpyHostToDevice, stream_.get()),
      "copy to the GPU");
  check(ncclAllGather(device + own, device, bytes, ncclUint8, communicator_, stream_.get()), kWhat);
  settle(kWhat);
  check_cuda(cudaMemcpyAsync(host, device, bytes * static_cast<size_t>(size_),
                             cudaMemcpyDeviceToHost, stream_.get()),
             "copy from the GPU");
  wait(kWhat);
}

std::vector<std::string> NcclTransport::all_gather_bytes(const std::string& mine) {
  use_device();
  return ByteRounds(rank_, size_, slots_->host(), [this](size_t bytes) { gather_slots(bytes); })
      .run(mine);
}

void NcclTransport::rehearse() {
  all_gather_bytes("");
  all_gather_bytes(std::string(slots_->host().size() / static_cast<size_t>(size_), '\0'));
}

void NcclTransport::barrier() {
  all_gather_bytes("");
}

std::shared_ptr<Transport> NcclTransport::duplicate() {
  use_device();
  NcclMeeting meeting{.rank = rank_, .size = size_};
  if (rank_ == 0) check(ncclGetUniqueId(&meeting.id), "duplicate");
  auto& id = meeting.id.internal;
  const auto ids = all_gather_bytes({id, id + sizeof id});
  std::memcpy(id, ids[0].data(), sizeof id);
  auto copy = std::make_shared<NcclTransport>(connect_gpus(meeting, *watch_), device_, watch_);
  copy->rehearse();
  return copy;
}

}  // namespace stretto::distributed
