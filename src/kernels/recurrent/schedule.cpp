#include "kernels/recurrent/schedule.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <thread>

namespace stretto::kernels {
namespace {

std::atomic<int64_t>& forced_bundles() {
  static std::atomic<int64_t> bundles = 0;
  return bundles;
}

/// Steps [begin, end) that are done with the same number of bundles.
struct Segment {
  int64_t begin, end, bundles;
};

std::vector<Segment> segments_of(const Schedule& schedule, int64_t threads, int64_t weights) {
  const int64_t forced = forced_bundles().load(std::memory_order_relaxed);
  std::vector<Segment> all;
  for (int64_t step = 0; step < schedule.steps(); ++step) {
    const int64_t bundles = forced > 0 ? std::min(forced, threads)
                                       : bundles_for(schedule.active(step), threads, weights);
    if (all.empty() || all.back().bundles != bundles) all.push_back({step, step, bundles});
    all.back().end = step + 1;
  }
  return all;
}

using Work = std::function<void(int64_t, const Bundle&, const ThreadTeam&)>;

void run_bundle(const Segment& segment, Time time, const Bundle& bundle, const ThreadTeam& team,
                const Work& work) {
  if (time == Time::kForward)
    for (int64_t step = segment.begin; step < segment.end; ++step) work(step, bundle, team);
  else
    for (int64_t step = segment.end; step-- > segment.begin;) work(step, bundle, team);
}

/// What one of `size` threads does in a segment: its part in one team, or several bundles alone
/// when the system gave fewer threads than there are bundles.
void run_member(const Segment& segment, Time time, int64_t member, int64_t size,
                std::vector<Barrier>& barriers, const Work& work) {
  if (size < segment.bundles) {
    for (int64_t i = member; i < segment.bundles; i += size)
      run_bundle(segment, time, {i, segment.bundles}, {0, 1, nullptr}, work);
    return;
  }
  const int64_t team = size / segment.bundles, bundle = member / team;
  if (bundle >= segment.bundles) return;  // threads that are left over
  run_bundle(segment, time, {bundle, segment.bundles},
             {member % team, team, &barriers[static_cast<size_t>(bundle)]}, work);
}

/// Below some ten microseconds of work a team of threads costs more than it saves.
constexpr int64_t kWorthATeam = int64_t{1} << 19;

}  // namespace

Schedule::Schedule(const Offsets& offsets, bool reverse) : direction_(reverse ? -1 : 1) {
  const at::Tensor host = offsets.values.to(at::kCPU, at::kInt).contiguous();
  const int32_t* rows = host.const_data_ptr<int32_t>();
  for (int64_t i = 0; i + 1 < host.numel(); ++i)
    ranks_.push_back({i, rows[i + 1] - rows[i], reverse ? rows[i + 1] - 1 : rows[i]});
  std::stable_sort(ranks_.begin(), ranks_.end(),
                   [](const Rank& a, const Rank& b) { return a.length > b.length; });
  active_.assign(ranks_.empty() ? 0 : static_cast<size_t>(ranks_[0].length), 0);
  for (const Rank& one : ranks_) {
    rows_ += one.length;
    if (one.length > 0) ++active_[static_cast<size_t>(one.length - 1)];
  }
  for (size_t step = active_.size(); step-- > 1;) active_[step - 1] += active_[step];
}

Schedule::Schedule(int64_t lanes) : rows_(lanes) {
  if (lanes > 0) active_.push_back(lanes);
  for (int64_t i = 0; i < lanes; ++i) ranks_.push_back({i, 1, i});
}

void Barrier::wait(int64_t size) {
  constexpr int kLooks = 4000;  // tens of microseconds
  const int64_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    return;
  }
  for (int looks = 0; round_.load(std::memory_order_acquire) == round; ++looks) {
    if (looks > kLooks) std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

int64_t bundles_for(int64_t rows, int64_t threads, int64_t weights) {
  constexpr int64_t kRows = 8;         // enough that weights stream no slower than they are used
  constexpr int64_t kSmall = 1 << 17;  // weights that all threads have in a cache of their own
  if (weights < kSmall) return threads;
  for (int64_t bundles = threads; bundles > 1; --bundles)
    if (threads % bundles == 0 && rows >= kRows * bundles) return bundles;
  return 1;
}

void force_bundles(int64_t bundles) {
  forced_bundles().store(bundles);
}

void run_steps(const Schedule& schedule, int64_t weights, Time time, const Work& work) {
  const bool small = forced_bundles() == 0 && schedule.rows() * weights < kWorthATeam;
  const int64_t threads = small || at::in_parallel_region() ? 1 : at::get_num_threads();
  std::vector<Segment> segments = segments_of(schedule, threads, weights);
  if (time == Time::kBackward) std::reverse(segments.begin(), segments.end());
  std::vector<Barrier> barriers(static_cast<size_t>(threads));
  for (const Segment& segment : segments) {
    const int wanted = static_cast<int>(threads);
#pragma omp parallel num_threads(wanted) if (wanted > 1)
    run_member(segment, time, omp_get_thread_num(), omp_get_num_threads(), barriers, work);
  }
}

void StepTeam::run(int64_t products, const std::function<void(const ThreadTeam&)>& work) {
  const bool alone = products < kWorthATeam || at::in_parallel_region();
  const int wanted = alone ? 1 : at::get_num_threads();
#pragma omp parallel num_threads(wanted) if (wanted > 1)
  work(ThreadTeam(omp_get_thread_num(), omp_get_num_threads(), &barrier_));
}

}  // namespace stretto::kernels
