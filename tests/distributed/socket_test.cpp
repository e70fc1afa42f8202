#include "distributed/socket.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;

TEST(Secrets, AreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("abab", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
  EXPECT_NE(random_hex(32), random_hex(32));
  EXPECT_EQ(random_hex(32).size(), 64u);
}

// Lines of if_inet6: address, index, length of the prefix, scope (00 = global), flags, name.
bool has_global_ipv6() {
  std::ifstream interfaces("/proc/net/if_inet6");
  std::array<std::string, 6> words;
  while (interfaces >> words[0] >> words[1] >> words[2] >> words[3] >> words[4] >> words[5]) {
    if (words[3] == "00" && words[5] != "lo") return true;
  }
  return false;
}

TEST(Addresses, OwnOnesAreOfBothFamilies) {
  bool found = false;
  for (const auto& address : own_addresses()) {
    found = found || address.find(':') != std::string::npos;
    EXPECT_FALSE(is_loopback(address)) << address;
    EXPECT_EQ(address.find("fe80:"), std::string::npos) << address;
  }
  EXPECT_EQ(found, has_global_ipv6());
}

TEST(Addresses, LoopbackIsThatOfTheListener) {
  const Socket listener = listen_on_loopback(0);
  EXPECT_TRUE(is_loopback(address_of(listener))) << address_of(listener);
  EXPECT_TRUE(connect_to(address_of(listener), port_of(listener), Clock::now() + 5s));
}

}  // namespace
}  // namespace stretto::distributed
