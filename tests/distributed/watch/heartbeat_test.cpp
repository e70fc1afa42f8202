#include "distributed/watch/heartbeat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "distributed/socket.h"
#include "distributed/watch/activity.h"
#include "distributed/watch/heartbeat_frame.h"
#include "tests/distributed/ranks.h"

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;
using testing::on_ranks, testing::verdict;

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

// Who says a right hello, one beat, and then nothing more.
Socket silent_rank(const std::string& words) {
  const auto invitation = nlohmann::json::parse(words);
  const auto token = invitation.at("token").get<std::string>();
  HeartbeatHello hello{.rank = 1};
  std::copy(token.begin(), token.end(), hello.token.begin());
  const auto soon = Clock::now() + 5s;
  Socket socket = connect_to("127.0.0.1", port_in(words), soon);
  HeartbeatFrame answer;
  EXPECT_TRUE(send_all(socket, hello.bytes(), soon));
  EXPECT_TRUE(receive_all(socket, reinterpret_cast<char*>(&answer), sizeof answer, soon));
  EXPECT_TRUE(send_all(socket, HeartbeatFrame{}.bytes(), soon));
  return socket;
}

// However slow this machine is: rank 0 counts only the time in which it could hear, and looks ten
// times in a timeout.
TEST(HeartbeatConnections, ASilentRankIsLostAfterTheTimeoutAndNotAfterTwice) {
  constexpr double kTimeout = 1;
  Room room(2);
  std::string how;
  std::thread root([&] {
    const ProcessGroup group(std::make_shared<RoomTransport>(room, 0, Edit{}));
    auto watch = std::make_shared<PeerWatch>();
    Heartbeat heartbeat(group, kTimeout, watch);
    how = verdict(*watch, 60s);
    group.barrier();
  });
  RoomTransport other(room, 1, Edit{});
  other.all_gather_bytes(R"({"host": "here", "pid": 1, "place": "elsewhere"})");
  const Socket silent = silent_rank(other.all_gather_bytes("")[0]);
  other.barrier();
  root.join();
  const std::string words = "is lost: it was not heard of for ";
  const size_t at = how.find(words);
  ASSERT_NE(at, std::string::npos) << how;
  const double seconds = std::stod(how.substr(at + words.size()));
  EXPECT_GE(seconds, kTimeout) << how;
  EXPECT_LT(seconds, 1.5 * kTimeout) << how;
}

// Another rank's goodbye would end the job although that rank still lives.
TEST(HeartbeatConnections, ARankSpeaksForNobodyButItself) {
  const std::string introduction = R"({"host": "here", "pid": 1, "place": "elsewhere"})";
  Room room(3);
  std::string how;
  std::thread root([&] {
    const ProcessGroup group(std::make_shared<RoomTransport>(room, 0, Edit{}));
    auto watch = std::make_shared<PeerWatch>();
    Heartbeat heartbeat(group, 60, watch);
    how = verdict(*watch, 30s);
    group.barrier();
  });
  std::thread third([&] {
    RoomTransport transport(room, 2, Edit{});
    transport.all_gather_bytes(introduction);
    transport.all_gather_bytes("");
    transport.barrier();
  });
  RoomTransport other(room, 1, Edit{});
  other.all_gather_bytes(introduction);
  const Socket socket = silent_rank(other.all_gather_bytes("")[0]);
  const auto goodbye = static_cast<uint32_t>(HeartbeatFrame::Kind::kGoodbye);
  const HeartbeatFrame of_another{.kind = goodbye, .rank = 2, .exit_code = 70};
  HeartbeatFrame its_own{.kind = goodbye, .rank = 1, .exit_code = 74};
  its_own.set_text("no space left");
  EXPECT_TRUE(send_all(socket, std::string(of_another.bytes()) + std::string(its_own.bytes()),
                       Clock::now() + 5s));
  other.barrier();
  third.join();
  root.join();
  EXPECT_TRUE(how.starts_with("rank 1 (host here, pid 1) is lost: it left with exit code 74"))
      << how;
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

// A rank that is taken for hung ends its process, which here is this test.
TEST(Heartbeat, WhatFollowsALossIsNoLossOfItsOwn) {
  for (const bool farewell : {false, true}) {
    on_ranks(3, [=](const ProcessGroup& group) {
      auto watch = std::make_shared<PeerWatch>();
      auto activity = std::make_shared<Activity>();
      Heartbeat heartbeat(group, 1.5, watch, activity);
      heartbeat.watch_stalls(4);
      // Ranks 0 and 2 wait in their second collective, and rank 1 is still to come.
      activity->enter(0, Collective::kAllReduce);
      activity->leave(0);
      if (group.rank() != 1) activity->enter(0, Collective::kAllReduce);
      group.barrier();
      if (group.rank() == 2) {
        std::this_thread::sleep_for(400ms);  // for a few beats
        if (farewell) heartbeat.say_goodbye(74, "no space left");
        return;
      }
      const std::string text = verdict(*watch, 5000ms);
      EXPECT_NE(text.find("rank 2 (host "), std::string::npos) << text;
      if (group.rank() == 1) activity->enter(0, Collective::kBarrier);
      std::this_thread::sleep_for(5s);  // for a stall to be told
      EXPECT_EQ(verdict(*watch, 100ms), text);
      heartbeat.say_goodbye(69, text);
    });
  }
}

}  // namespace
}  // namespace stretto::distributed
