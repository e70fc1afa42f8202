#include "tasks/parallel_jobs.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace stretto::tasks {
namespace {

/// With as many threads of libtorch as asked, while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int before_;
};

/// One of so many processes, which has lost another if `is_alone`.
class PlayedTransport : public distributed::Transport {
 public:
  PlayedTransport(int rank, int size, bool is_alone)
      : rank_(rank), size_(size), is_alone_(is_alone) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "played"; }
  void all_reduce(distributed::Buffer) override {}
  void reduce(distributed::Buffer, int) override {}
  void broadcast(distributed::Buffer, int) override {}
  void reduce_scatter(distributed::Buffer, std::span<const int64_t>) override {}
  void all_gather(distributed::Buffer, std::span<const int64_t>) override {}
  void exchange(distributed::Buffer, distributed::Buffer, std::span<const int64_t>) override {}
  std::vector<std::string> all_gather_bytes(const std::string& mine) override { return {mine}; }
  void barrier() override {}
  std::shared_ptr<distributed::Transport> duplicate() override { return nullptr; }
  void check_peers() const override {
    if (is_alone_) throw std::runtime_error("rank 1 is lost");
  }

 private:
  const int rank_, size_;
  const bool is_alone_;
};

distributed::ProcessGroup played_group(int rank, int size, bool is_alone = false) {
  return distributed::ProcessGroup(std::make_shared<PlayedTransport>(rank, size, is_alone));
}

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
  EXPECT_THROW(jobs.run_share(played_group(0, 2, /*is_alone=*/true), 4, [&](int64_t) { ++done; }),
               std::runtime_error);
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace stretto::tasks
