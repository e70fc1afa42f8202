#include "launcher/noise_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::launcher {
namespace {

std::string filtered(const std::vector<std::string>& chunks) {
  NoiseFilter filter(47);
  std::string shown;
  for (const auto& chunk : chunks) shown += filter.pass(chunk);
  return shown + filter.rest();
}

TEST(NoiseFilter, TakesOutTheLauncherAndNothingElse) {
  const std::string noise = "[node-7.lan:47] PMIX ERROR: BAD-PARAM in file a.c at line 1033\n";
  struct Row {
    const char* what;
    std::string in, out;
  };
  const Row rows[] = {
      {"alone", noise, ""},
      {"with zeros", "[n:00047] x\n[n:00471] y\n[n:0047 z\n", "[n:00471] y\n[n:0047 z\n"},
      {"between lines", "step 1\n" + noise + noise + "step 2\n", "step 1\nstep 2\n"},
      {"in a progress line", "\rstep 1" + noise + "\rstep 2", "\rstep 1\rstep 2"},
      {"a rank's", "[node-7.lan:48] PMIX ERROR\n", "[node-7.lan:48] PMIX ERROR\n"},
      {"a number that begins so", "[node-7.lan:471] x\n", "[node-7.lan:471] x\n"},
      {"brackets", "[###  ] [[a:47 [:4\n", "[###  ] [[a:47 [:4\n"},
      {"its event library",
       "step 1\n[warn] Epoll MOD(1) on fd 25 failed. Old events were 6\nstep 2\n",
       "step 1\nstep 2\n"},
      {"another warning", "[warn] epoll\n[warn\n[warn] E", "[warn] epoll\n[warn\n[warn] E"},
      {"an open end", "50 % [node-7:4", "50 % [node-7:4"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(filtered({row.in}), row.out) << row.what;
    std::vector<std::string> bytes;
    for (const char c : row.in) bytes.push_back({c});
    EXPECT_EQ(filtered(bytes), row.out) << row.what << ", byte for byte";
  }
  NoiseFilter filter(47);
  filter.pass("step 1\n" + noise);
  EXPECT_EQ(filter.withheld(), noise);
}

TEST(NoiseFilter, HoldsBackNothingThatMayStandForLong) {
  NoiseFilter filter(47);
  EXPECT_EQ(filter.pass("\rstep 10 [##  ] 3"), "\rstep 10 [##  ] 3");
  // No host has a name as long as this.
  const std::string word = "[" + std::string(256, 'a');
  EXPECT_EQ(NoiseFilter(47).pass(word), word);
  EXPECT_EQ(NoiseFilter(47).pass(word.substr(0, 100)), "");
}

}  // namespace
}  // namespace stretto::launcher
