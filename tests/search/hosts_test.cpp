#include "search/hosts.h"

#include <gtest/gtest.h>

#include "base/system_info.h"
#include "tests/base/failure.h"
#include "tests/distributed/scoped_variable.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

using stretto::testing::expect_in;

TEST(Hosts, AreReadLineByLine) {
  const auto hosts = parse_hosts(
      "# two machines\n\nnode1 slots=8 gpus=2\r\n  user@10.0.0.7\tslots=3 # and this one\n"
      "localhost slots=2\n",
      "hosts");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "node1");
  EXPECT_EQ(hosts[0].slots, 8);
  EXPECT_EQ(hosts[0].gpus, (std::vector<std::string>{"0", "1"}));
  EXPECT_FALSE(hosts[0].is_here());
  EXPECT_EQ(hosts[1].name, "user@10.0.0.7");
  EXPECT_EQ(hosts[1].slots, 3);
  EXPECT_TRUE(hosts[1].gpus.empty());
  EXPECT_TRUE(hosts[2].is_here());
  EXPECT_TRUE(parse_hosts(host_name() + "\n", "hosts").front().is_here());
  EXPECT_EQ(parse_hosts("a", "hosts").front().slots, 1);
  EXPECT_TRUE(parse_hosts("a gpus=0", "hosts").front().gpus.empty());
  EXPECT_EQ(parse_hosts("a slots=4096 gpus=1024", "hosts").front().slots, 4096);
  EXPECT_EQ(parse_hosts(std::string(255, 'a'), "hosts").size(), 1u);
}

TEST(Hosts, RefusesWhatIsNoHostWithItsLine) {
  const auto refusal = [](const std::string& text) {
    return testing::failure(ExitCode::kUsage, [&] { parse_hosts(text, "hosts"); }).message();
  };
  expect_in("hosts: there is no host", refusal("# nothing\n\n"));
  expect_in("hosts:2: `cores=3` is neither slots=N nor gpus=N", refusal("a\nb cores=3\n"));
  for (const char* count :
       {"slots=0", "slots=-1", "slots=", "slots=3x", "slots=99999999999999999"}) {
    expect_in("hosts:1: `" + std::string(count) + "` must be a whole number from 1 to 4096",
              refusal("a " + std::string(count)));
  }
  expect_in("hosts:2: a is there already", refusal("a slots=1\na slots=2\n"));
  expect_in("this machine is there already", refusal("localhost\nlocalhost\n"));
  // An option of ssh, or words of a shell.
  expect_in("is no name of a host", refusal(std::string(256, 'a')));
  for (const char* name : {"-oProxyCommand=id", "a;id", "$(id)", "a`id`",
                           "a\x01"
                           "b"}) {
    expect_in("is no name of a host", refusal(name));
  }
}

TEST(Hosts, TakesTheGpusThatTheEnvironmentLeaves) {
  const testing::ScopedVariable variable("CUDA_VISIBLE_DEVICES", "1, GPU-aa,3");
  EXPECT_EQ(visible_gpus(), (std::vector<std::string>{"1", "GPU-aa", "3"}));
  const testing::ScopedVariable none("CUDA_VISIBLE_DEVICES", "");
  EXPECT_TRUE(visible_gpus().empty());
}

}  // namespace
}  // namespace stretto::search
