#include "parallel/parallel_jobs.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/distributed/played_group.h"
#include "tests/kernels/scopes.h"

namespace stretto::parallel {
namespace {

using stretto::test::played_group;
using testing::Threads;

TEST(ParallelJobs, DoesEachJobOnceWithoutGradients) {
  for (const int count : {1, 3}) {
    const Threads threads(count);
    ParallelJobs jobs(at::kCPU);
    for (const int64_t asked : {0, 1, 2, 50}) {
      std::vector<int> done(static_cast<size_t>(asked));
      jobs.run(asked, [&](int64_t i) {
        done[static_cast<size_t>(i)] += at::GradMode::is_enabled() ? 100 : 1;
      });
      EXPECT_EQ(done, std::vector<int>(static_cast<size_t>(asked), 1)) << count << " threads";
    }
  }
}

TEST(ParallelJobs, ThrowsWhatWasThrownFirst) {
  for (const int count : {1, 3}) {
    const Threads threads(count);
    ParallelJobs jobs(at::kCPU);
    int entered = 0;
    const auto fail = [&] {
      jobs.run(1000, [&](int64_t) {
        jobs.exclusively([&] {
          if (++entered == 5) throw std::out_of_range("the fifth");
        });
      });
    };
    EXPECT_THROW(fail(), std::out_of_range);
    EXPECT_EQ(entered, 5) << "no job goes on after a failure";
    int done = 0;
    jobs.run(4, [&](int64_t) { jobs.exclusively([&] { ++done; }); });
    EXPECT_EQ(done, 4) << "a failure is forgotten with its call";
  }
}

TEST(ParallelJobs, SharesJobsOutAmongProcesses) {
  for (const int size : {1, 2, 3, 8}) {
    std::vector<int> done(7);
    for (int rank = 0; rank < size; ++rank) {
      ParallelJobs jobs(at::kCPU);
      jobs.run_share(played_group(rank, size), 7, [&](int64_t i) {
        EXPECT_EQ(i % size, rank);
        jobs.exclusively([&] { ++done[static_cast<size_t>(i)]; });
      });
    }
    EXPECT_EQ(done, std::vector<int>(7, 1)) << size << " processes";
  }
}

TEST(ParallelJobs, EndsWhenAPeerIsLost) {
  ParallelJobs jobs(at::kCPU);
  int done = 0;
  const auto group = stretto::test::group_that_lost_a_peer();
  EXPECT_THROW(jobs.run_share(group, 4, [&](int64_t) { ++done; }), std::runtime_error);
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace stretto::parallel
