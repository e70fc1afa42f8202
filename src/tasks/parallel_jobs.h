#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>

#include "distributed/process_group.h"
#include "kernels/gemm/packed_weights.h"

namespace stretto::tasks {

/// Numbered jobs for models that do not change, each without gradients.
///
/// On a CPU each thread of libtorch does whole jobs: threads then wait for each other far less
/// than they do inside each product. Elsewhere one job follows the other. Weights are laid out
/// for products once, for as long as this lives (kernels/gemm/packed_weights.h).
class ParallelJobs {
 public:
  explicit ParallelJobs(const at::Device& device) : on_cpu_(device.is_cpu()) {}

  /// Does the jobs 0 … count - 1. When one throws, no other begins, and once all threads are
  /// done, what was thrown first is thrown again.
  void run(int64_t count, const std::function<void(int64_t)>& job);

  /// Does those of the jobs that fall to this process: rank, rank + size, … Throws
  /// Error(kPeerLost) when a process is lost.
  void run_share(const distributed::ProcessGroup& group, int64_t count,
                 const std::function<void(int64_t)>& job);

  /// Within a job: makes `change` while no other job is within this. Throws when another job
  /// has failed; what `change` throws ends the work of all.
  void exclusively(const std::function<void()>& change);

 private:
  void work(int64_t count, const std::function<void(int64_t)>& job);
  void note_failure();

  const bool on_cpu_;
  kernels::PackedWeights packed_;
  std::mutex mutex_;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace stretto::tasks
