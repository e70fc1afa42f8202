#include "distributed/watch/stall_watch.h"

#include <gtest/gtest.h>

#include "distributed/watch/heartbeat_frame.h"

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;
using States = Activity::States;

const Clock::time_point kStart{1000h};
constexpr auto kTimeout = 60s, kWarnAfter = 300s, kStall = 1800s;

States on_channel(size_t channel, uint64_t begun, bool inside,
                  Collective what = Collective::kAllReduce) {
  States states;
  states[channel] = {begun, what, inside};
  return states;
}

StallWatch watch_of(int size) {
  StallWatch watch(size, kTimeout);
  watch.watch_stalls(kWarnAfter, kStall, kStart);
  return watch;
}

TEST(StallWatch, RanksInDifferentCollectivesAreLostAfterTheTimeout) {
  for (const bool same_number : {false, true}) {
    auto watch = watch_of(3);
    watch.hear(0, on_channel(1, 7, true), kStart);
    watch.hear(1, on_channel(1, same_number ? 7 : 6, true, Collective::kBarrier), kStart + 1s);
    watch.hear(2, on_channel(1, 7, true), kStart);
    EXPECT_FALSE(watch.judge(kStart + kTimeout));
    const auto finding = watch.judge(kStart + 1s + kTimeout);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(finding->lost);
    EXPECT_EQ(finding->rank, 1);
    EXPECT_EQ(finding->how, "it waits in collective " + std::string(same_number ? "7" : "6") +
                                " (barrier), ranks 0, 2 in collective 7 (all_reduce): they would "
                                "wait for each other for ever");
  }
}

TEST(StallWatch, RanksInOneCollectiveMayTakeAnyTime) {
  auto watch = watch_of(2);
  for (int rank : {0, 1}) watch.hear(rank, on_channel(0, 7, true), kStart);
  EXPECT_FALSE(watch.judge(kStart + 100h));
}

TEST(StallWatch, AMoveOfAnyRankStartsTheTimeoutAnew) {
  auto watch = watch_of(2);
  watch.hear(0, on_channel(0, 7, true), kStart);
  watch.hear(1, on_channel(0, 5, true), kStart);
  watch.hear(1, on_channel(0, 6, true), kStart + 59s);
  EXPECT_FALSE(watch.judge(kStart + 118s));
  EXPECT_TRUE(watch.judge(kStart + 119s));
}

TEST(StallWatch, ARankThatOthersWaitForIsWarnedOfOnceAndThenLost) {
  auto watch = watch_of(3);
  watch.hear(1, on_channel(0, 6, false), kStart);
  watch.hear(0, on_channel(0, 7, true), kStart + 10s);
  watch.hear(2, on_channel(0, 7, true), kStart + 20s);
  EXPECT_FALSE(watch.judge(kStart + 309s));
  const auto warning = watch.judge(kStart + 320s);
  ASSERT_TRUE(warning);
  EXPECT_FALSE(warning->lost);
  EXPECT_EQ(warning->rank, 1);
  EXPECT_FALSE(watch.judge(kStart + 1809s));
  const auto loss = watch.judge(kStart + 1810s);
  ASSERT_TRUE(loss);
  EXPECT_TRUE(loss->lost);
  EXPECT_EQ(loss->rank, 1);
  EXPECT_EQ(loss->how,
            "it began and ended no collective for 1800 s, and ranks 0, 2 wait for it in "
            "collective 7 (all_reduce)");
}

TEST(StallWatch, TimeInWhichNobodyCouldBeHeardDoesNotCount) {
  auto strays = watch_of(2), stalled = watch_of(2);
  strays.hear(0, on_channel(0, 7, true), kStart);
  strays.hear(1, on_channel(0, 6, true), kStart);
  stalled.hear(0, on_channel(0, 7, true), kStart);
  stalled.hear(1, on_channel(0, 6, false), kStart);
  for (auto* watch : {&strays, &stalled}) watch->pause(10h);
  EXPECT_FALSE(strays.judge(kStart + 10h + kTimeout - 1s));
  EXPECT_TRUE(strays.judge(kStart + 10h + kTimeout));
  EXPECT_FALSE(stalled.judge(kStart + 10h + kWarnAfter - 1s));
  EXPECT_TRUE(stalled.judge(kStart + 10h + kWarnAfter));
}

// Each case has another begin of the time that counts, which must move with the pause.
TEST(StallWatch, APauseMovesWhicheverTimeCounts) {
  constexpr auto kPause = 10h, kLater = 1h;
  struct Case {
    const char* what;
    Clock::duration rank_moved, other_came, watched;
  };
  for (const Case& one :
       {Case{"the rank's last move", kLater, 0s, 0s}, Case{"the wait of the other", 0s, kLater, 0s},
        Case{"the begin of the watch", 0s, 0s, kLater}}) {
    StallWatch watch(2, kTimeout);
    watch.hear(1, on_channel(0, 6, false), kStart + one.rank_moved);
    watch.hear(0, on_channel(0, 7, true), kStart + one.other_came);
    watch.watch_stalls(kWarnAfter, kStall, kStart + one.watched);
    watch.pause(kPause);
    const auto counts_from = kStart + kLater + kPause;
    EXPECT_FALSE(watch.judge(counts_from + kWarnAfter - 1s)) << one.what;
    const auto warning = watch.judge(counts_from + kWarnAfter);
    ASSERT_TRUE(warning) << one.what;
    EXPECT_FALSE(warning->lost);
    EXPECT_FALSE(watch.judge(counts_from + kStall - 1s)) << one.what;
    const auto loss = watch.judge(counts_from + kStall);
    ASSERT_TRUE(loss) << one.what;
    EXPECT_TRUE(loss->lost);
  }
}

TEST(StallWatch, ARankThatMovesOnAnotherChannelIsNotStalled) {
  auto watch = watch_of(2);
  watch.hear(0, on_channel(0, 7, true), kStart);
  States states = on_channel(0, 6, false);
  for (int minute = 0; minute < 100; ++minute) {
    states[2].begun = static_cast<uint64_t>(minute);
    watch.hear(1, states, kStart + std::chrono::minutes(minute));
    EXPECT_FALSE(watch.judge(kStart + std::chrono::minutes(minute))) << minute;
  }
}

TEST(StallWatch, NobodyIsStalledBeforeItIsAskedOrWithoutAnybodyWaiting) {
  StallWatch early(2, kTimeout);
  early.hear(0, on_channel(0, 7, true), kStart);
  early.hear(1, on_channel(0, 6, false), kStart);
  EXPECT_FALSE(early.judge(kStart + 100h));
  early.watch_stalls(kWarnAfter, kStall, kStart + 100h);
  EXPECT_FALSE(early.judge(kStart + 100h + 299s));
  EXPECT_TRUE(early.judge(kStart + 100h + 300s));

  auto idle = watch_of(2);
  for (int rank : {0, 1}) idle.hear(rank, on_channel(0, 7, false), kStart);
  EXPECT_FALSE(idle.judge(kStart + 100h));
  // The one outside has been through it already.
  idle.hear(0, on_channel(0, 7, true), kStart);
  EXPECT_FALSE(idle.judge(kStart + 100h));
}

TEST(StallWatch, WithoutALimitItOnlyWarnsAndRanksThatLeftAreForgotten) {
  StallWatch watch(3, kTimeout);
  watch.watch_stalls(kWarnAfter, 0s, kStart);
  watch.hear(0, on_channel(0, 7, true), kStart);
  watch.hear(1, on_channel(0, 6, false), kStart);
  watch.hear(2, on_channel(0, 5, false), kStart);
  watch.forget(2);
  const auto warning = watch.judge(kStart + 100h);
  ASSERT_TRUE(warning);
  EXPECT_FALSE(warning->lost);
  EXPECT_EQ(warning->rank, 1);
  EXPECT_FALSE(watch.judge(kStart + 200h));
}

TEST(Activity, TravelsInABeatAsItIs) {
  Activity activity;
  EXPECT_EQ(activity.open_channel(), 0u);
  EXPECT_EQ(activity.open_channel(), 1u);
  for (int i = 0; i < 3; ++i) {
    activity.enter(1, Collective::kExchange);
    if (i < 2) activity.leave(1);
  }
  activity.enter(Activity::kChannels, Collective::kBarrier);  // not followed, no harm
  HeartbeatFrame frame;
  EXPECT_FALSE(frame.states());
  frame.set_states(activity.states());
  ASSERT_TRUE(frame.states());
  EXPECT_EQ(*frame.states(), on_channel(1, 3, true, Collective::kExchange));
  EXPECT_STREQ(name_of(static_cast<Collective>(99)), "unknown");
}

}  // namespace
}  // namespace stretto::distributed
