#include "launcher/rank_processes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/scoped_variable.h"

namespace stretto::launcher {
namespace {

using namespace std::chrono_literals;
using testing::ScopedVariable;

TEST(RankProcesses, AreFoundByTheirEnvironmentUntilTheyEnd) {
  const testing::TempDir folder;
  const auto start = [&](const std::string& job, const std::string& rank) {
    const ScopedVariable in("STRETTO_JOB_FOLDER", job), size("OMPI_COMM_WORLD_SIZE", "4"),
        number("OMPI_COMM_WORLD_RANK", rank);
    return ChildProcess({find_program("sleep"), "60"});
  };
  const std::string here = folder.path().string();
  ChildProcess third = start(here, "3"), first = start(here, "1"), stranger = start("/other", "0");
  const auto found = [&] {
    std::vector<std::pair<int, int64_t>> all;
    for (const auto& one : find_rank_processes(folder.path())) all.emplace_back(one.rank, one.pid);
    return all;
  };
  using Expected = std::vector<std::pair<int, int64_t>>;
  const Expected both{{1, first.pid()}, {3, third.pid()}};
  for (int i = 0; i < 100 && found() != both; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_EQ(found(), both);

  EXPECT_FALSE(is_stopped(third.pid()));
  third.send(SIGSTOP);
  for (int i = 0; i < 100 && !is_stopped(third.pid()); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(is_stopped(third.pid()));
  EXPECT_TRUE(is_alive(third.pid()));

  first.send(SIGKILL);  // and nobody asks for its exit code: a zombie
  for (int i = 0; i < 100 && is_alive(first.pid()); ++i) std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(is_alive(first.pid()));
  EXPECT_EQ(found(), (Expected{{3, third.pid()}}));
}

}  // namespace
}  // namespace stretto::launcher
