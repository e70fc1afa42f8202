#include "tests/distributed/nccl/played_device.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

namespace stretto::distributed::played {
namespace {

struct Table {
  Device device;
  std::map<const void*, std::string> names;
  std::vector<std::unique_ptr<char>> handles;
  int num_streams = 0, num_events = 0;
  cudaError_t last_error = cudaSuccess;
};

Table& table() {
  static Table instance;
  return instance;
}

void* named_handle(const std::string& name) {
  table().handles.push_back(std::make_unique<char>());
  void* const handle = table().handles.back().get();
  table().names[handle] = name;
  return handle;
}

std::string name_of(const void* handle) {
  if (handle == nullptr) return "default";
  const auto found = table().names.find(handle);
  return found == table().names.end() ? "unknown" : found->second;
}

void note(const std::string& what) {
  table().device.notes.push_back(what);
}

cudaError_t allocate(void** memory, size_t bytes) {
  if (!device().has_memory) return cudaErrorMemoryAllocation;
  ++device().num_allocations;
  *memory = std::malloc(bytes);
  return cudaSuccess;
}

ncclResult_t collective(const char* what, cudaStream_t stream) {
  note(std::string(what) + " " + name_of(stream));
  return device().unsettled > 0 ? ncclInProgress : ncclSuccess;
}

size_t bytes_of(ncclDataType_t type) {
  return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : 8;
}

}  // namespace

Device& device() {
  return table().device;
}

Device& restart(int ranks) {
  table() = Table{};
  table().device.ranks = ranks;
  return device();
}

void* name_stream(const std::string& name) {
  return named_handle(name);
}

}  // namespace stretto::distributed::played

using namespace stretto::distributed::played;

extern "C" {

cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "played";
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return allocate(memory, bytes);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const int number = table().num_streams++;
  *stream =
      static_cast<cudaStream_t>(named_handle(number == 0 ? "own" : "own" + std::to_string(number)));
  if (flags != cudaStreamNonBlocking) device().blocking_streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = static_cast<cudaEvent_t>(named_handle("event" + std::to_string(table().num_events++)));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  note("record " + name_of(event) + " on " + name_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  note(name_of(stream) + " waits for " + name_of(event));
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  if (device().unready == 0) return cudaSuccess;
  --device().unready;
  return table().last_error = cudaErrorNotReady;
}
cudaError_t cudaGetLastError() {
  return std::exchange(table().last_error, cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  note(std::string(kind == cudaMemcpyHostToDevice ? "copy in " : "copy out ") + name_of(stream));
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t, int* rank) {
  *rank = 0;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t, int* count) {
  *count = device().ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = device().unsettled > 0 ? ncclInProgress : ncclSuccess;
  if (device().unsettled > 0 && --device().unsettled == 0) note("settled");
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*) {
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId*) {
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t) {
  return "played";
}
ncclResult_t ncclGroupStart() {
  note("group");
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t stream) {
  return collective("all_reduce", stream);
}
ncclResult_t ncclReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                        cudaStream_t stream) {
  return collective("reduce", stream);
}
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                           cudaStream_t stream) {
  return collective("broadcast", stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t, cudaStream_t stream) {
  const size_t bytes = count * bytes_of(type);
  const std::string mine(static_cast<const char*>(send), bytes);
  for (int r = 0; r < device().ranks; ++r) {
    std::memcpy(static_cast<char*>(receive) + static_cast<size_t>(r) * bytes, mine.data(), bytes);
  }
  return collective("all_gather", stream);
}
ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return collective("send", stream);
}
ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t stream) {
  return collective("receive", stream);
}
}
