#include "search/places.h"

#include <gtest/gtest.h>

namespace stretto::search {
namespace {

using namespace std::chrono_literals;
using Clock = Places::Clock;
using Gpus = std::vector<std::string>;

const Clock::time_point kNow{};

TEST(Places, FillsHostsOneAfterTheOther) {
  Places places({{.name = "a", .slots = 5}, {.name = "b", .slots = 2}, {.name = "c", .slots = 1}},
                {.slots = 2}, 1s);
  EXPECT_EQ(places.capacity(), 3u);
  const auto first = places.take(kNow), second = places.take(kNow), third = places.take(kNow);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(places.host(*first).name, "a");
  EXPECT_EQ(places.host(*second).name, "a");
  EXPECT_EQ(places.host(*third).name, "b");
  EXPECT_FALSE(places.take(kNow));
  places.give_back(*second);
  EXPECT_EQ(places.host(*places.take(kNow)).name, "a");
}

TEST(Places, GivesEachTrialGpusOfItsOwn) {
  Places places({{.slots = 8, .gpus = {"0", "1", "2", "3", "4"}}}, {.slots = 1, .gpus = 2}, 1s);
  EXPECT_EQ(places.capacity(), 2u);
  const auto first = places.take(kNow), second = places.take(kNow);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->gpus, (Gpus{"0", "1"}));
  EXPECT_EQ(second->gpus, (Gpus{"2", "3"}));
  EXPECT_FALSE(places.take(kNow));
  places.give_back(*first);
  EXPECT_EQ(places.take(kNow)->gpus, (Gpus{"0", "1"}));
}

TEST(Places, LeavesAHostAloneThatFailedAndForGoodInTheEnd) {
  Places places({{.name = "a", .slots = 1}, {.name = "b", .slots = 1}}, {}, 1s);
  auto now = kNow;
  auto a = places.take(now);
  EXPECT_FALSE(places.give_back_failed(*a, now));
  const auto b = places.take(now);
  EXPECT_EQ(places.host(*b).name, "b");
  EXPECT_FALSE(places.take(now));
  EXPECT_FALSE(places.take(now + 999ms));
  EXPECT_EQ(places.capacity(), 2u) << "the number of trials at a time shapes the table";
  for (const auto pause : {1s, 4s, 16s}) {
    EXPECT_FALSE(places.take(now + pause - 1ms)) << pause.count();
    now += pause;
    a = places.take(now);
    ASSERT_TRUE(a) << pause.count();
    EXPECT_EQ(places.give_back_failed(*a, now), pause == 16s);
  }
  EXPECT_FALSE(places.take(now + 1h));
  EXPECT_TRUE(places.any_left());
  places.give_back(*b);
  for (int i = 0; i < Places::kMostFailures; ++i) {
    now += 1h;
    places.give_back_failed(*places.take(now), now);
  }
  EXPECT_FALSE(places.any_left());
}

TEST(Places, ForgetsFailuresOnceATrialHasRun) {
  Places places({{.name = "a", .slots = 1}}, {}, 1s);
  auto now = kNow;
  for (int i = 0; i < 10; ++i) {
    now += 1h;
    EXPECT_FALSE(places.give_back_failed(*places.take(now), now));
    now += 1h;
    places.give_back(*places.take(now));
  }
  EXPECT_TRUE(places.any_left());
}

}  // namespace
}  // namespace stretto::search
