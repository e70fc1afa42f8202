#include "dist/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/error.h"
#include "dist/agreement.h"
#include "dist/heartbeat.h"
#include "dist/socket.h"
#include "tests/base/failure.h"

namespace stretto::dist {
namespace {

using namespace std::chrono_literals;

// A port that nobody has at this moment.
int free_port() {
  return port_of(listen_on("127.0.0.1", 0));
}

RendezvousPlace place(int rank, int size, int port) {
  return {.rank = rank, .size = size, .address = "127.0.0.1", .port = port, .wait_seconds = 20};
}

/// Runs body(group) for each rank of a rendezvous, on a thread of its own.
template <class Body>
void on_ranks(int size, Body body) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([=] {
      try {
        body(ProcessGroup(meet(place(rank, size, port))));
      } catch (const std::exception& error) {
        ADD_FAILURE() << rank << ": " << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

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

TEST(Secrets, AreComparedWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("abab", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
  EXPECT_NE(random_hex(32), random_hex(32));
  EXPECT_EQ(random_hex(32).size(), 64u);
}

// What a watch says in the end; empty when it says nothing for `time`.
std::string verdict(const PeerWatch& watch, std::chrono::milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    try {
      watch.check();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kPeerLost);
      return error.what();
    }
    std::this_thread::sleep_for(5ms);
  }
  return "";
}

TEST(Heartbeat, SaysNothingWhileAllLiveAndAfterAllLeft) {
  on_ranks(3, [](const ProcessGroup& group) {
    auto watch = std::make_shared<PeerWatch>();
    Heartbeat heartbeat(group, 1.5, watch);
    EXPECT_EQ(verdict(*watch, 2000ms), "");
    group.barrier();
    heartbeat.say_goodbye(0, "");
    EXPECT_EQ(verdict(*watch, 100ms), "");
  });
}

TEST(Heartbeat, ARankThatEndsWithoutAFarewellIsLostToAll) {
  on_ranks(3, [](const ProcessGroup& group) {
    auto watch = std::make_shared<PeerWatch>();
    auto heartbeat = std::make_unique<Heartbeat>(group, 30, watch);
    group.barrier();
    if (group.rank() == 2) {
      heartbeat.reset();
      return;
    }
    const std::string text = verdict(*watch, 5000ms);
    EXPECT_NE(text.find("rank 2 (host "), std::string::npos) << text;
    EXPECT_NE(text.find("its process has ended"), std::string::npos) << text;
  });
}

TEST(Heartbeat, AFarewellWithAFailureNamesItsReason) {
  on_ranks(3, [](const ProcessGroup& group) {
    auto watch = std::make_shared<PeerWatch>();
    Heartbeat heartbeat(group, 30, watch);
    group.barrier();
    if (group.rank() == 1) {
      heartbeat.say_goodbye(70, "the loss is not finite\nadvice");
      return;
    }
    const std::string text = verdict(*watch, 5000ms);
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("left with exit code 70: the loss is not finite"), std::string::npos)
        << text;
    EXPECT_EQ(text.find("advice"), std::string::npos);
  });
}

TEST(PeerWatch, TheFirstLossCountsAndWaitsForTheGrace) {
  PeerWatch watch;
  watch.set_peers({{"a", 1}, {"b", 2}});
  watch.left(0, 10s);
  EXPECT_NO_THROW(watch.check());  // patience
  watch.lost(1, "gone");
  watch.lost(0, "later");
  EXPECT_TRUE(watch.alarmed());
  EXPECT_NO_THROW(watch.check());  // grace
  EXPECT_EQ(verdict(watch, 3000ms), "rank 1 (host b, pid 2) is lost: gone");
}

TEST(PeerWatch, AWaitEndsWithTheLoss) {
  PeerWatch watch;
  std::thread thread([&] {
    std::this_thread::sleep_for(20ms);
    watch.lost(3, "gone");
  });
  EXPECT_THROW(wait_until(watch, [] { return false; }), Error);
  thread.join();
}

}  // namespace
}  // namespace stretto::dist
