/// Every collective of the NCCL backend on GPUs, against plain sums, and how fast it sums.
///
///     nccl_check                                   one process, one GPU
///     torchrun --nproc-per-node 8 --no-python nccl_check
///     mpirun -np 8 --bind-to none nccl_check
///
/// A run of one process trains without a backend, so that this is where a machine with one GPU
/// meets NCCL. Leaves with 0 if every result was right; the first wrong one is named.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/launch.h"
#include "dist/make_group.h"
#include "dist/plugin.h"

namespace stretto::dist {
namespace {

constexpr const char* kBug = "this is a bug of src/dist/nccl, or of NCCL";

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
  const double rate = gigabytes_a_second(group, 60'000'000);
  if (group.is_root())
    std::printf("%s, %d processes: every collective is right; all_reduce of 240 MB: %.1f GB/s\n",
                group.name(), group.size(), rate);
}

}  // namespace
}  // namespace stretto::dist

int main() {
  try {
    stretto::dist::run();
  } catch (const stretto::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message().c_str());
    return stretto::dist::leave(static_cast<int>(error.code()), error.what());
  }
  return stretto::dist::leave(0, "");
}
