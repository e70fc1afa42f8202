#include "dist/nccl/nccl_transport.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/error.h"

namespace stretto::dist {
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

/// Device memory for the length of a call.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size) {
    check_cuda(cudaMalloc(&data_, std::max<size_t>(size, 1)), "allocate");
  }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

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

NcclTransport::NcclTransport(ncclComm_t communicator, int device, std::shared_ptr<PeerWatch> watch)
    : communicator_(communicator), device_(device), watch_(std::move(watch)) {
  use_device();
  check(ncclCommUserRank(communicator_, &rank_), "rank");
  check(ncclCommCount(communicator_, &size_), "size");
  // A blocking stream: it waits for the default stream, on which the buffers were filled.
  check_cuda(cudaStreamCreate(&stream_), "make a stream");
  check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "make an event");
}

NcclTransport::~NcclTransport() {
  // Aborting never waits for others, who may be gone.
  ncclCommAbort(communicator_);
  if (done_ != nullptr) cudaEventDestroy(done_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
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

void NcclTransport::wait(const char* what) {
  const auto state = [&] {
    ncclResult_t now = ncclSuccess;
    check(ncclCommGetAsyncError(communicator_, &now), what);
    check(now, what);
    return now;
  };
  // A communicator that does not block may still be handing the work to the stream.
  wait_until(*watch_, [&] { return state() == ncclSuccess; });
  check_cuda(cudaEventRecord(done_, stream_), "record an event");
  wait_until(*watch_, [&] {
    state();
    const cudaError_t ready = cudaEventQuery(done_);
    if (ready == cudaErrorNotReady) return false;
    check_cuda(ready, what);
    return true;
  });
}

void NcclTransport::all_reduce(Buffer data) {
  use_device();
  check(ncclAllReduce(data.data, data.data, static_cast<size_t>(data.count),
                      nccl_type(data.element), ncclSum, communicator_, stream_),
        "all_reduce");
  wait("all_reduce");
}

void NcclTransport::reduce(Buffer data, int root) {
  use_device();
  check(ncclReduce(data.data, data.data, static_cast<size_t>(data.count), nccl_type(data.element),
                   ncclSum, root, communicator_, stream_),
        "reduce");
  wait("reduce");
}

void NcclTransport::broadcast(Buffer data, int root) {
  use_device();
  check(ncclBroadcast(data.data, data.data, static_cast<size_t>(data.count),
                      nccl_type(data.element), root, communicator_, stream_),
        "broadcast");
  wait("broadcast");
}

void NcclTransport::reduce_scatter(Buffer data, std::span<const int64_t> begins) {
  use_device();
  check(ncclGroupStart(), "reduce_scatter");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    char* part = at(data, first);
    check(ncclReduce(part, part, static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                     nccl_type(data.element), ncclSum, r, communicator_, stream_),
          "reduce_scatter");
  }
  check(ncclGroupEnd(), "reduce_scatter");
  wait("reduce_scatter");
}

void NcclTransport::all_gather(Buffer data, std::span<const int64_t> begins) {
  use_device();
  check(ncclGroupStart(), "all_gather");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    char* part = at(data, first);
    check(ncclBroadcast(part, part, static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                        nccl_type(data.element), r, communicator_, stream_),
          "all_gather");
  }
  check(ncclGroupEnd(), "all_gather");
  wait("all_gather");
}

void NcclTransport::exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) {
  use_device();
  const auto own = static_cast<size_t>(rank_);
  const int64_t mine = begins[own + 1] - begins[own];
  if (receive.count < mine * size_ || receive.element != send.element) {
    throw std::invalid_argument("[nccl] exchange: receive is too short or of another type");
  }
  const ncclDataType_t type = nccl_type(send.element);
  check(ncclGroupStart(), "exchange");
  for (int r = 0; r < size_; ++r) {
    const int64_t first = begins[static_cast<size_t>(r)];
    check(ncclSend(at(send, first), static_cast<size_t>(begins[static_cast<size_t>(r) + 1] - first),
                   type, r, communicator_, stream_),
          "exchange");
    check(
        ncclRecv(at(receive, mine * r), static_cast<size_t>(mine), type, r, communicator_, stream_),
        "exchange");
  }
  check(ncclGroupEnd(), "exchange");
  wait("exchange");
}

std::vector<std::string> NcclTransport::all_gather_bytes(const std::string& mine) {
  use_device();
  const auto size = static_cast<size_t>(size_), rank = static_cast<size_t>(rank_);
  std::vector<int64_t> lengths(size), begins(size + 1);
  lengths[rank] = static_cast<int64_t>(mine.size());
  std::iota(begins.begin(), begins.end(), 0);
  const DeviceBytes counts(size * sizeof(int64_t));
  const Buffer counts_buffer{counts.data(), size_, Element::kI64};
  check_cuda(cudaMemcpy(counts.data(), lengths.data(), size * sizeof(int64_t), cudaMemcpyDefault),
             "copy to the GPU");
  all_gather(counts_buffer, begins);
  check_cuda(cudaMemcpy(lengths.data(), counts.data(), size * sizeof(int64_t), cudaMemcpyDefault),
             "copy from the GPU");
  begins[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), begins.begin() + 1);
  std::string all(static_cast<size_t>(begins.back()), '\0');
  const DeviceBytes bytes(all.size());
  check_cuda(cudaMemcpy(bytes.data() + begins[rank], mine.data(), mine.size(), cudaMemcpyDefault),
             "copy to the GPU");
  all_gather({bytes.data(), begins.back(), Element::kByte}, begins);
  check_cuda(cudaMemcpy(all.data(), bytes.data(), all.size(), cudaMemcpyDefault),
             "copy from the GPU");
  std::vector<std::string> parts;
  for (size_t r = 0; r < size; ++r) {
    parts.push_back(all.substr(static_cast<size_t>(begins[r]), static_cast<size_t>(lengths[r])));
  }
  return parts;
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
  return std::make_shared<NcclTransport>(connect_gpus(meeting, *watch_), device_, watch_);
}

}  // namespace stretto::dist
