#include "distributed/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/error.h"
#include "distributed/agreement.h"
#include "distributed/socket.h"
#include "tests/base/failure.h"
#include "tests/distributed/ranks.h"

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;
using testing::free_port, testing::on_ranks, testing::place;

TEST(Rendezvous, GathersBytesOfAnyLength) {
  on_ranks(4, [](const ProcessGroup& group) {
    for (const size_t length : {0, 1, 300000}) {
      const auto all = group.all_gather_bytes(std::string(
          length * static_cast<size_t>(group.rank()), static_cast<char>('a' + group.rank())));
      ASSERT_EQ(all.size(), 4u);
      for (size_t r = 0; r < 4; ++r)
        EXPECT_EQ(all[r], std::string(length * r, static_cast<char>('a' + r)));
    }
    require_agreement(group, {{"data", "same"}});
    group.barrier();
  });
}

TEST(Rendezvous, StrangersAreSentAwayAndTheRanksStillMeet) {
  const int port = free_port();
  std::thread root([&] {
    const ProcessGroup group(meet(place(0, 2, port)));
    EXPECT_EQ(group.all_gather_bytes("0"), (std::vector<std::string>{"0", "1"}));
  });
  const auto soon = Clock::now() + 5s;
  Socket garbage = connect_to("127.0.0.1", port, soon);
  send_all(garbage, std::string(500, 'x'), soon);
  Socket closed = connect_to("127.0.0.1", port, soon);
  closed.close();
  auto wrong = place(1, 2, port);
  wrong.token = "guess";
  wrong.wait_seconds = 0.5;
  testing::failure(ExitCode::kPeerLost, [&] { meet(wrong); });
  const ProcessGroup group(meet(place(1, 2, port)));
  EXPECT_EQ(group.all_gather_bytes("1"), (std::vector<std::string>{"0", "1"}));
  root.join();
}

// One after the other, 5 s each, they would take more than twice what rank 0 waits for the ranks.
TEST(Rendezvous, SilentStrangersKeepNobodyWaiting) {
  const int port = free_port(), count = 80;
  std::thread root([&] {
    try {
      auto place_of_root = place(0, 3, port);
      place_of_root.wait_seconds = 60;
      EXPECT_EQ(ProcessGroup(meet(place_of_root)).all_gather_bytes("0").size(), 3u);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  std::vector<Socket> strangers;
  for (int i = 0; i < count; ++i) {
    strangers.push_back(connect_to("127.0.0.1", port, Clock::now() + 10s));
    ASSERT_TRUE(strangers.back());
    if (i % 2 == 1) send_all(strangers.back(), "half a hello", Clock::now() + 1s);
  }
  std::vector<std::thread> others;
  for (int rank : {1, 2}) {
    others.emplace_back([=] {
      auto mine = place(rank, 3, port);
      mine.wait_seconds = 60;
      try {
        EXPECT_EQ(ProcessGroup(meet(mine)).all_gather_bytes("").size(), 3u);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (auto& thread : others) thread.join();
  root.join();
}

TEST(Rendezvous, MoreStrangersThanItKeepsDoNotShutARankOut) {
  const int port = free_port();
  std::thread root([&] {
    try {
      EXPECT_EQ(ProcessGroup(meet(place(0, 2, port))).all_gather_bytes("0").size(), 2u);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  std::vector<Socket> strangers;
  for (int i = 0; i < 400; ++i) {
    strangers.push_back(connect_to("127.0.0.1", port, Clock::now() + 10s));
  }
  try {
    EXPECT_EQ(ProcessGroup(meet(place(1, 2, port))).all_gather_bytes("1").size(), 2u);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  root.join();
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  auto root = place(0, 3, free_port());
  root.wait_seconds = 0.2;
  const Error error = testing::failure(ExitCode::kPeerLost, [&] { meet(root); });
  EXPECT_NE(std::string(error.what()).find("missing: 1, 2"), std::string::npos) << error.what();
}

TEST(Rendezvous, BeyondOneHostNeedsAToken) {
  struct Case {
    const char* address;
    int local_size;
  };
  // A name may mean loopback here and another machine elsewhere; a count says it better than both.
  for (const Case& one : {Case{"0.0.0.0", 0}, Case{"192.0.2.1", 0}, Case{"some-host", 0},
                          Case{"127.0.0.1", 1}, Case{"localhost", 1}}) {
    auto open = place(0, 2, 1);
    open.address = one.address;
    open.local_size = one.local_size;
    SCOPED_TRACE(one.address);
    const Error error = testing::failure(ExitCode::kUnsafe, [&] { meet(open); });
    EXPECT_NE(error.advice().find("STRETTO_RENDEZVOUS_TOKEN"), std::string::npos);
  }
}

/// Runs both ranks; rank 0 has another view of its own address than rank 1.
void two_ranks_meet(RendezvousPlace root, RendezvousPlace other) {
  std::thread thread([&] {
    try {
      EXPECT_EQ(ProcessGroup(meet(root)).all_gather_bytes("0").size(), 2u);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  try {
    EXPECT_EQ(ProcessGroup(meet(other)).all_gather_bytes("1").size(), 2u);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  thread.join();
}

TEST(Rendezvous, RankZeroNeedsNoAddressOfItsOwnBeyondOneHost) {
  // A service or NAT that leads to rank 0, and a host whose own name means 127.0.1.1 to itself.
  for (const char* address : {"192.0.2.1", "127.0.1.1"}) {
    auto root = place(0, 2, free_port()), other = root;
    root.token = other.token = "secret";
    root.local_size = other.local_size = 1;
    root.wait_seconds = other.wait_seconds = 5;
    root.address = address;
    other.rank = 1;
    two_ranks_meet(root, other);
  }
}

TEST(Rendezvous, OneHostStaysOnLoopbackWhateverItsNameMeans) {
  auto root = place(0, 2, free_port());
  root.address = "192.0.2.1";
  root.local_size = 2;
  root.wait_seconds = 5;
  EXPECT_EQ(root.meeting_address(), "127.0.0.1");
  auto other = root;
  other.rank = 1;
  std::thread stranger([&] {
    for (const auto& address : own_addresses()) {
      EXPECT_FALSE(connect_to(address, root.port, Clock::now() + 100ms)) << address;
    }
  });
  std::thread late([&] {
    stranger.join();
    EXPECT_EQ(ProcessGroup(meet(other)).all_gather_bytes("1").size(), 2u);
  });
  EXPECT_EQ(ProcessGroup(meet(root)).all_gather_bytes("0").size(), 2u);
  late.join();
}

TEST(Rendezvous, ATakenPortIsSaid) {
  const Socket taken = listen_on("127.0.0.1", 0);
  testing::failure(ExitCode::kIo, [&] { meet(place(0, 2, port_of(taken))); });
}

}  // namespace
}  // namespace stretto::distributed
