/// Every collective of the NCCL backend on GPUs, against plain sums, how fast it sums, and what
/// only a GPU can tell: whether a sum goes on beside a default stream that is busy, waits for a
/// buffer that is filled late, and whether words still arrive when the GPU has no memory left.
///
///     nccl_check                                   one process, one GPU
///     torchrun --nproc-per-node 8 --no-python nccl_check
///     mpirun -np 8 --bind-to none nccl_check
///
/// A run of one process trains without a backend, so that this is where a machine with one GPU
/// meets NCCL. Prints a line for each question, `question: answer`. Leaves with 0 if every result
/// was right; the first wrong one is named.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "distributed/launch.h"
#include "distributed/make_group.h"
#include "distributed/plugin.h"

namespace stretto::distributed {
namespace {

constexpr const char* kBug = "this is a bug of src/distributed/nccl, or of NCCL";

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  throw Error(ExitCode::kUsage, std::string("CUDA: ") + cudaGetErrorString(result),
              "look with nvidia-smi whether a GPU is there and has memory left");
}

/// Numbers in the memory of the GPU.
class OnGpu {
 public:
  explicit OnGpu(const std::vector<float>& values) : count_(static_cast<int64_t>(values.size())) {
    check(cudaMalloc(&data_, bytes()));
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  ~OnGpu() { cudaFree(data_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  Buffer buffer() const { return {data_, count_, Element::kF32}; }
  std::vector<float> values() const {
    std::vector<float> all(static_cast<size_t>(count_));
    check(cudaMemcpy(all.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return all;
  }

 private:
  size_t bytes() const { return static_cast<size_t>(count_) * sizeof(float); }
  void* data_ = nullptr;
  int64_t count_;
};

// Small whole numbers: their sums are exact.
float value(int rank, int64_t i) {
  return static_cast<float>((i * 31 + rank * 7) % 17 - 8);
}

std::vector<float> values(int rank, int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = value(rank, i);
  return all;
}

std::vector<float> sums(int size, int64_t count) {
  std::vector<float> all(static_cast<size_t>(count));
  for (int rank = 0; rank < size; ++rank) {
    for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] += value(rank, i);
  }
  return all;
}

/// What each collective should leave on this rank, for parts of unequal length.
class Check {
 public:
  Check(const ProcessGroup& group, int64_t count) : group_(group), count_(count) {
    begins_.resize(static_cast<size_t>(group.size()) + 1);
    for (size_t r = 0; r < begins_.size(); ++r)
      begins_[r] = count * static_cast<int64_t>(r * r) / (group.size() * group.size());
  }

  void all() const {
    const int rank = group_.rank(), size = group_.size();
    OnGpu data(values(rank, count_));
    group_.all_reduce(data.buffer());
    expect(data.values(), sums(size, count_), "all_reduce");

    OnGpu reduced(values(rank, count_));
    group_.reduce(reduced.buffer());
    if (group_.is_root()) expect(reduced.values(), sums(size, count_), "reduce");

    OnGpu sent(values(rank, count_));
    group_.broadcast(sent.buffer(), size - 1);
    expect(sent.values(), values(size - 1, count_), "broadcast");

    OnGpu scattered(values(rank, count_));
    group_.reduce_scatter(scattered.buffer(), begins_);
    expect(own(scattered.values()), own(sums(size, count_)), "reduce_scatter");

    OnGpu gathered(values(rank, count_));
    group_.all_gather(gathered.buffer(), begins_);
    std::vector<float> parts(static_cast<size_t>(count_));
    for (int r = 0; r < size; ++r) {
      for (int64_t i = begin(r); i < begin(r + 1); ++i) parts[static_cast<size_t>(i)] = value(r, i);
    }
    expect(gathered.values(), parts, "all_gather");
    exchange();
  }

 private:
  void exchange() const {
    const int64_t mine = begin(group_.rank() + 1) - begin(group_.rank());
    const OnGpu send(values(group_.rank(), count_));
    const OnGpu receive(
        std::vector<float>(static_cast<size_t>(std::max<int64_t>(1, mine * group_.size()))));
    group_.exchange(send.buffer(), receive.buffer(), begins_);
    std::vector<float> want(receive.values().size());
    for (int r = 0; r < group_.size(); ++r) {
      for (int64_t i = 0; i < mine; ++i)
        want[static_cast<size_t>(r * mine + i)] = value(r, begin(group_.rank()) + i);
    }
    expect(receive.values(), want, "exchange");
  }

  int64_t begin(int rank) const { return begins_[static_cast<size_t>(rank)]; }
  std::vector<float> own(const std::vector<float>& all) const {
    return {all.begin() + begin(group_.rank()), all.begin() + begin(group_.rank() + 1)};
  }

  void expect(const std::vector<float>& got, const std::vector<float>& want,
              const char* what) const {
    if (got == want) return;
    const auto at = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
    throw Error(ExitCode::kBadData,
                std::string(what) + " of " + std::to_string(count_) + " numbers: wrong at " +
                    std::to_string(at.first - got.begin()),
                kBug);
  }

  const ProcessGroup& group_;
  int64_t count_;
  std::vector<int64_t> begins_;
};

double gigabytes_a_second(const ProcessGroup& group, int64_t count) {
  const OnGpu data(std::vector<float>(static_cast<size_t>(count), 1.0f));
  group.all_reduce(data.buffer());
  constexpr int kTimes = 10;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) group.all_reduce(data.buffer());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return static_cast<double>(count) * sizeof(float) * kTimes / seconds.count() / 1e9;
}

using Seconds = std::chrono::duration<double>;
using WallClock = std::chrono::steady_clock;

// Keeps the default stream busy for as long as it runs; queued there, it returns at once.
constexpr std::chrono::milliseconds kBusy{400};
void CUDART_CB be_busy(void*) {
  std::this_thread::sleep_for(kBusy);
}

void print(const ProcessGroup& group, const char* question, const std::string& answer) {
  if (group.is_root()) std::printf("%s: %s\n", question, answer.c_str());
  std::fflush(stdout);
}

// What `dist.overlap` stands on: gradients that are ready are summed while backward still computes.
void check_overlap(const ProcessGroup& group) {
  const OnGpu data(std::vector<float>(1'000'000, 1.0f));
  cudaStream_t idle = nullptr;
  check(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
  Buffer buffer = data.buffer();
  buffer.stream = idle;
  check(cudaDeviceSynchronize());
  group.all_reduce(buffer);  // whatever NCCL does once
  group.barrier();
  check(cudaLaunchHostFunc(nullptr, be_busy, nullptr));
  const auto begin = WallClock::now();
  group.all_reduce(buffer);
  const Seconds took = WallClock::now() - begin;
  const bool still_busy = cudaStreamQuery(nullptr) == cudaErrorNotReady;
  cudaGetLastError();  // it is what is wanted
  check(cudaDeviceSynchronize());
  check(cudaStreamDestroy(idle));
  if (!still_busy) {
    throw Error(ExitCode::kBadData, "a sum waited for the default stream: overlap hides nothing",
                kBug);
  }
  print(group, "overlap",
        "4 MB were summed in " + std::to_string(took.count() * 1e3) +
            " ms while the default stream was busy");
}

// The other side of it: a buffer that the default stream fills late is waited for.
void check_late_buffer(const ProcessGroup& group) {
  constexpr int64_t kCount = 1'000'000;
  const std::vector<float> mine = values(group.rank(), kCount);
  float* pinned = nullptr;
  check(cudaHostAlloc(reinterpret_cast<void**>(&pinned), mine.size() * sizeof(float), 0));
  std::copy(mine.begin(), mine.end(), pinned);
  const OnGpu data(std::vector<float>(mine.size(), 1000.0f));
  check(cudaDeviceSynchronize());
  check(cudaLaunchHostFunc(nullptr, be_busy, nullptr));
  check(cudaMemcpyAsync(data.buffer().data, pinned, mine.size() * sizeof(float),
                        cudaMemcpyHostToDevice, nullptr));
  group.all_reduce(data.buffer());
  check(cudaGetLastError());  // libtorch's next launch would take it for its own
  const bool right = data.values() == sums(group.size(), kCount);
  check(cudaFreeHost(pinned));
  if (!right) {
    throw Error(ExitCode::kBadData, "a sum did not wait for the stream that filled its buffer",
                kBug);
  }
  print(group, "late buffer", "the sum waited for the stream that filled it");
}

/// All memory of the GPU that it gives away.
class AllMemory {
 public:
  AllMemory() {
    for (size_t bytes = size_t{1} << 36; bytes >= (size_t{1} << 20);) {
      void* piece = nullptr;
      if (cudaMalloc(&piece, bytes) == cudaSuccess) {
        pieces_.push_back(piece);
        bytes_ += bytes;
      } else {
        cudaGetLastError();  // it is what is wanted
        bytes /= 2;
      }
    }
  }
  ~AllMemory() {
    for (void* piece : pieces_) cudaFree(piece);
  }
  AllMemory(const AllMemory&) = delete;
  AllMemory& operator=(const AllMemory&) = delete;
  size_t mebibytes() const { return bytes_ >> 20; }

 private:
  std::vector<void*> pieces_;
  size_t bytes_ = 0;
};

// A rank whose allocation has failed must still tell the others.
void check_words_without_memory(const ProcessGroup& group) {
  group.barrier();
  const AllMemory taken;
  void* more = nullptr;
  const bool refused = cudaMalloc(&more, size_t{64} << 20) == cudaErrorMemoryAllocation;
  cudaGetLastError();
  if (!refused) cudaFree(more);
  for (const size_t length : {0, 10, 4096, 5'000'000}) {
    const auto all =
        group.all_gather_bytes(std::string(length, static_cast<char>('a' + group.rank() % 26)));
    for (int r = 0; r < group.size(); ++r) {
      if (all[static_cast<size_t>(r)] == std::string(length, static_cast<char>('a' + r % 26)))
        continue;
      throw Error(ExitCode::kBadData, "words without memory: wrong at rank " + std::to_string(r),
                  kBug);
    }
  }
  print(group, "words without memory",
        "up to 5 MB arrived with " + std::to_string(taken.mebibytes()) + " MiB taken" +
            (refused ? ", when 64 MiB more were refused" : "; but 64 MiB more were to be had"));
}

ProcessGroup join() {
  if (detect_launch().size > 1) return make_process_group({.backend = "nccl"}, DeviceKind::kCuda);
  return ProcessGroup(nccl_api().open(ProcessGroup(), 0, std::make_shared<PeerWatch>()));
}

void run() {
  const ProcessGroup group = join();
  const ProcessGroup second = group.duplicate();
  for (const int64_t count : {1, 7, 1000, 10'000'000}) {
    Check(group, count).all();
    Check(second, count).all();
  }
  const auto words = group.all_gather_bytes("rank " + std::to_string(group.rank()));
  for (int r = 0; r < group.size(); ++r) {
    if (words[static_cast<size_t>(r)] != "rank " + std::to_string(r))
      throw Error(ExitCode::kBadData, "all_gather_bytes: wrong at rank " + std::to_string(r), kBug);
  }
  group.barrier();
  print(group, "collectives",
        "every one is right, " + std::to_string(group.size()) + " processes, " + group.name());
  print(group, "all_reduce of 240 MB",
        std::to_string(gigabytes_a_second(group, 60'000'000)) + " GB/s");
  check_overlap(group);
  check_late_buffer(group);
  check_words_without_memory(group);
}

}  // namespace
}  // namespace stretto::distributed

int main() {
  try {
    stretto::distributed::run();
  } catch (const stretto::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message().c_str());
    return stretto::distributed::leave(static_cast<int>(error.code()), error.what());
  }
  return stretto::distributed::leave(0, "");
}
