#include "tasks/parallel_jobs.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>

#include "kernels/compute.h"

namespace stretto::tasks {

void ParallelJobs::run(int64_t count, const std::function<void(int64_t)>& job) {
  next_ = 0;
  failed_ = false;
  failure_ = nullptr;
  const kernels::Compute compute = kernels::ComputeScope::current();
  const auto of_one_thread = [&] {
    // Threads have their own of these.
    const at::NoGradGuard no_grad;
    const kernels::ComputeScope arithmetic(compute);
    const kernels::PackedWeightsScope packed(packed_);
    work(count, job);
  };
  const auto threads = std::min<int64_t>(at::get_num_threads(), count);
  if (on_cpu_ && threads > 1) {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) of_one_thread();
    });
  } else {
    of_one_thread();
  }
  if (failure_) std::rethrow_exception(failure_);
}

void ParallelJobs::run_share(const distributed::ProcessGroup& group, int64_t count,
                             const std::function<void(int64_t)>& job) {
  const int64_t rank = group.rank(), size = group.size();
  run(rank < count ? (count - rank + size - 1) / size : 0, [&](int64_t i) {
    exclusively([&] { group.check_peers(); });
    job(rank + i * size);
  });
}

void ParallelJobs::work(int64_t count, const std::function<void(int64_t)>& job) {
  try {
    for (int64_t i = next_++; i < count && !failed_; i = next_++) job(i);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    note_failure();
  }
}

void ParallelJobs::exclusively(const std::function<void()>& change) {
  const std::lock_guard lock(mutex_);
  if (failed_) throw std::runtime_error("[parallel_jobs] another job has failed");
  try {
    change();
  } catch (...) {
    note_failure();  // before any other job comes here, and throws because of it
    throw;
  }
}

void ParallelJobs::note_failure() {
  if (!failed_.exchange(true)) failure_ = std::current_exception();
}

}  // namespace stretto::tasks
