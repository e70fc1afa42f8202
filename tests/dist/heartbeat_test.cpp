#include "dist/heartbeat.h"

#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "dist/heartbeat_frame.h"
#include "dist/socket.h"

namespace stretto::dist {
namespace {

using namespace std::chrono_literals;

/// Changes what this rank gathers; called with the number of the gathering, from 0. A heartbeat
/// gathers introductions, then the invitation of rank 0.
using Edit = std::function<void(int number, std::vector<std::string>& words)>;
constexpr int kIntroductions = 0, kInvitation = 1;

/// Where threads of this process gather their words.
class Room {
 public:
  explicit Room(int size) : words_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(words_.size()); }
  std::vector<std::string> gather(int rank, const std::string& mine) {
    words_[static_cast<size_t>(rank)] = mine;
    meet();
    const auto all = words_;
    meet();
    return all;
  }

 private:
  void meet() {
    std::unique_lock lock(mutex_);
    const int turn = turn_;
    if (++arrived_ == size()) {
      arrived_ = 0;
      ++turn_;
      all_here_.notify_all();
    }
    all_here_.wait(lock, [&] { return turn_ != turn; });
  }

  std::vector<std::string> words_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int turn_ = 0, arrived_ = 0;
};

/// As much of a group as a heartbeat needs.
class RoomTransport : public Transport {
 public:
  RoomTransport(Room& room, int rank, Edit edit)
      : room_(room), rank_(rank), edit_(std::move(edit)) {}

  int rank() const override { return rank_; }
  int size() const override { return room_.size(); }
  const char* name() const override { return "room"; }
  std::vector<std::string> all_gather_bytes(const std::string& mine) override {
    auto all = room_.gather(rank_, mine);
    if (edit_) edit_(number_++, all);
    return all;
  }
  void barrier() override { room_.gather(rank_, ""); }
  void all_reduce(Buffer) override { not_here(); }
  void reduce(Buffer, int) override { not_here(); }
  void broadcast(Buffer, int) override { not_here(); }
  void reduce_scatter(Buffer, std::span<const int64_t>) override { not_here(); }
  void all_gather(Buffer, std::span<const int64_t>) override { not_here(); }
  void exchange(Buffer, Buffer, std::span<const int64_t>) override { not_here(); }
  std::shared_ptr<Transport> duplicate() override { not_here(); }

 private:
  [[noreturn]] static void not_here() { throw std::logic_error("a room only gathers"); }

  Room& room_;
  int rank_;
  Edit edit_;
  int number_ = 0;
};

/// A heartbeat on each of `size` threads, with `edit` on rank 1; -> what each of them heard of a
/// loss within 300 ms, or why it did not come to be. Empty when all is well.
std::vector<std::string> run_heartbeats(int size, const Edit& edit_all, const Edit& edit_one) {
  Room room(size);
  std::vector<std::string> heard(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const Edit edit = [&](int number, std::vector<std::string>& words) {
        if (edit_all) edit_all(number, words);
        if (edit_one && rank == 1) edit_one(number, words);
      };
      const ProcessGroup group(std::make_shared<RoomTransport>(room, rank, edit));
      auto watch = std::make_shared<PeerWatch>();
      std::unique_ptr<Heartbeat> heartbeat;
      std::string& mine = heard[static_cast<size_t>(rank)];
      try {
        heartbeat = std::make_unique<Heartbeat>(group, 30, watch);
      } catch (const std::exception& error) {
        mine = error.what();
      }
      group.barrier();
      std::this_thread::sleep_for(300ms);
      if (watch->alarmed()) mine = watch->news().what();
      group.barrier();
      if (heartbeat) heartbeat->say_goodbye(0, "");
    });
  }
  for (auto& thread : threads) thread.join();
  return heard;
}

int port_in(const std::string& invitation) {
  return nlohmann::json::parse(invitation).at("port").get<int>();
}

TEST(HeartbeatConnections, StrangersAtTheDoorDoNotKeepARankAway) {
  std::vector<Socket> strangers;
  std::thread leaving;
  const auto heard = run_heartbeats(2, {}, [&](int number, std::vector<std::string>& words) {
    if (number != kInvitation) return;
    // More than are let in, none of whom speaks; they go before anybody sends them away.
    for (int i = 0; i < 110; ++i) {
      strangers.push_back(connect_to("127.0.0.1", port_in(words[0]), Clock::now() + 5s));
    }
    leaving = std::thread([&] {
      std::this_thread::sleep_for(400ms);
      strangers.clear();
    });
  });
  leaving.join();
  EXPECT_EQ(heard, std::vector<std::string>(2));
}

TEST(HeartbeatConnections, ManyRanksMayComeAtOnce) {
  const auto heard = run_heartbeats(150, {}, {});
  EXPECT_EQ(heard, std::vector<std::string>(150));
}

TEST(HeartbeatConnections, AnAttemptThatARankGaveUpIsNoLoss) {
  Socket late;  // it goes when the rank has come another time
  const auto heard = run_heartbeats(2, {}, [&](int number, std::vector<std::string>& words) {
    if (number != kInvitation) return;
    const auto invitation = nlohmann::json::parse(words[0]);
    const auto token = invitation.at("token").get<std::string>();
    HeartbeatHello hello{.rank = 1};
    std::copy(token.begin(), token.end(), hello.token.begin());
    const auto attempt = [&] {
      const auto soon = Clock::now() + 5s;
      Socket socket = connect_to("127.0.0.1", port_in(words[0]), soon);
      HeartbeatFrame answer;
      EXPECT_TRUE(send_all(socket, hello.bytes(), soon));
      EXPECT_TRUE(receive_all(socket, reinterpret_cast<char*>(&answer), sizeof answer, soon));
      return socket;
    };
    attempt();
    late = attempt();
  });
  EXPECT_EQ(heard, std::vector<std::string>(2));
}

bool has_address(const std::string& address) {
  try {
    listen_on(address, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Ranks on several hosts, of which one knows a single address of rank 0.
TEST(HeartbeatConnections, BothFamiliesOfAddressesLeadToRankZero) {
  for (const std::string address : {"127.0.0.1", "::1"}) {
    if (!has_address(address)) continue;
    const auto heard = run_heartbeats(
        2,
        [](int number, std::vector<std::string>& words) {
          if (number != kIntroductions) return;
          auto other = nlohmann::json::parse(words[1]);
          other["place"] = "elsewhere";
          words[1] = other.dump();
        },
        [&](int number, std::vector<std::string>& words) {
          if (number != kInvitation) return;
          auto invitation = nlohmann::json::parse(words[0]);
          invitation["addresses"] = {address};
          words[0] = invitation.dump();
        });
    EXPECT_EQ(heard, std::vector<std::string>(2)) << address;
  }
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

TEST(PeerNews, AFailedCollectiveWaitsForTheNews) {
  PeerWatch watch;
  std::thread thread([&] {
    std::this_thread::sleep_for(100ms);
    watch.lost(3, "gone");
  });
  try {
    watch.wait_for_news();
    ADD_FAILURE() << "no news";
  } catch (const PeerLost& loss) {
    EXPECT_EQ(loss.rank(), 3);
  }
  thread.join();
  PeerWatch silent;
  EXPECT_NO_THROW(silent.wait_for_news());
  PeerWatch patient;  // nobody needs to wait any longer for one that has left
  patient.left(2, 1h);
  EXPECT_THROW(patient.wait_for_news(), PeerLost);
}

TEST(PeerNews, KnowsWhetherTheNewsWereHeeded) {
  PeerWatch watch;
  watch.check();
  EXPECT_FALSE(watch.heeded());
  watch.lost(1, "gone");
  EXPECT_FALSE(watch.heeded());
  watch.check();
  EXPECT_TRUE(watch.heeded());
}

}  // namespace
}  // namespace stretto::dist
