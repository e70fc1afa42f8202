#include "base/system_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <regex>
#include <thread>
#include <vector>

namespace stretto {
namespace {

TEST(SystemInfo, CountsOnlyCoresThatThisThreadMayUse) {
  int cores = 0;
  // A thread of its own: a narrowed mask would stay for the tests that follow.
  std::thread([&] {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &before)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
      break;
    }
    cores = usable_cores();
  }).join();
  EXPECT_EQ(cores, 1);
  EXPECT_GE(usable_cores(), 1);
}

TEST(SystemInfo, NamesTheMachine) {
  const CpuInfo cpu = cpu_info();
  EXPECT_FALSE(cpu.model.empty());
  EXPECT_EQ(cpu.cores, usable_cores());
  EXPECT_FALSE(host_name().empty());
  EXPECT_NE(system_name().find("Linux"), std::string::npos);
  // Whoever has AVX-512 has AVX2.
  EXPECT_TRUE(!cpu.avx512f || cpu.avx2);
}

TEST(SystemInfo, FeaturesListsWhatIsThere) {
  CpuInfo cpu;
  EXPECT_TRUE(cpu.features().empty());
  cpu.avx2 = cpu.amx_bf16 = true;
  EXPECT_EQ(cpu.features(), (std::vector<std::string>{"AVX2", "AMX BF16"}));
}

TEST(SystemInfo, AvailableMemoryIsPartOfTotalMemory) {
  EXPECT_GT(available_memory_bytes(), uint64_t{1} << 20);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
}

TEST(SystemInfo, PeakMemoryGrowsWithUse) {
  const uint64_t before = peak_rss_bytes();
  EXPECT_GT(before, uint64_t{1} << 20);
  std::vector<char> much(before + (uint64_t{64} << 20), 1);
  EXPECT_GT(peak_rss_bytes(), before + (uint64_t{32} << 20));
  EXPECT_EQ(much.back(), 1);
}

TEST(SystemInfo, TimeIsIso8601) {
  EXPECT_TRUE(std::regex_match(utc_now(), std::regex(R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
}

}  // namespace
}  // namespace stretto
