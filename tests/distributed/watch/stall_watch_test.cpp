#include "distributed/watch/stall_watch.h"

#include <gtest/gtest.h>

#include "distributed/watch/heartbeat_frame.h"

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;
using States = Activity::States;

const Clock::time_point kBeginning{1000h};
constexpr auto kSilence = 60s, kWarnAfter = 300s, kStall = 1800s;

States on_channel(size_t channel, uint64_t begun, bool inside,
                  Collective what = Collective::kAllReduce) {
  States states;
  states[channel] = {begun, what, inside};
  return states;
}

StallWatch watch_of(int size) {
  StallWatch watch(size, kSilence);
  watch.watch_stalls(kWarnAfter, kStall, kBeginning);
  return watch;
}

TEST(StallWatch, RanksInDifferentCollectivesAreLostAfterTheTimeout) {
  for (const bool same_number : {false, true}) {
    auto watch = watch_of(3);
    watch.hear(0, on_channel(1, 7, true), kBeginning);
    watch.hear(1, on_channel(1, same_number ? 7 : 6, true, Collective::kBarrier), kBeginning + 1s);
    watch.hear(2, on_channel(1, 7, true), kBeginning);
    EXPECT_FALSE(watch.judge(kBeginning + kSilence));
    const auto finding = watch.judge(kBeginning + 1s + kSilence);
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
  for (int rank : {0, 1}) watch.hear(rank, on_channel(0, 7, true), kBeginning);
  EXPECT_FALSE(watch.judge(kBeginning + 100h));
}

TEST(StallWatch, AMoveOfAnyRankStartsTheTimeoutAnew) {
  auto watch = watch_of(2);
  watch.hear(0, on_channel(0, 7, true), kBeginning);
  watch.hear(1, on_channel(0, 5, true), kBeginning);
  watch.hear(1, on_channel(0, 6, true), kBeginning + 59s);
  EXPECT_FALSE(watch.judge(kBeginning + 118s));
  EXPECT_TRUE(watch.judge(kBeginning + 119s));
}

TEST(StallWatch, ARankThatOthersWaitForIsWarnedOfOnceAndThenLost) {
  auto watch = watch_of(3);
  watch.hear(1, on_channel(0, 6, false), kBeginning);
  watch.hear(0, on_channel(0, 7, true), kBeginning + 10s);
  watch.hear(2, on_channel(0, 7, true), kBeginning + 20s);
  EXPECT_FALSE(watch.judge(kBeginning + 309s));
  const auto warning = watch.judge(kBeginning + 320s);
  ASSERT_TRUE(warning);
  EXPECT_FALSE(warning->lost);
  EXPECT_EQ(warning->rank, 1);
  EXPECT_FALSE(watch.judge(kBeginning + 1809s));
  const auto loss = watch.judge(kBeginning + 1810s);
  ASSERT_TRUE(loss);
  EXPECT_TRUE(loss->lost);
  EXPECT_EQ(loss->rank, 1);
  EXPECT_EQ(loss->how,
            "it began and ended no collective for 1800 s, and ranks 0, 2 wait for it in "
            "collective 7 (all_reduce)");
}

TEST(StallWatch, TimeInWhichNobodyCouldBeHeardDoesNotCount) {
  auto strays = watch_of(2), stalled = watch_of(2);
  strays.hear(0, on_channel(0, 7, true), kBeginning);
  strays.hear(1, on_channel(0, 6, true), kBeginning);
  stalled.hear(0, on_channel(0, 7, true), kBeginning);
  stalled.hear(1, on_channel(0, 6, false), kBeginning);
  for (auto* watch : {&strays, &stalled}) watch->pause(10h);
  EXPECT_FALSE(strays.judge(kBeginning + 10h + kSilence - 1s));
  EXPECT_TRUE(strays.judge(kBeginning + 10h + kSilence));
  EXPECT_FALSE(stalled.judge(kBeginning + 10h + kWarnAfter - 1s));
  EXPECT_TRUE(stalled.judge(kBeginning + 10h + kWarnAfter));
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
    StallWatch watch(2, kSilence);
    watch.hear(1, on_channel(0, 6, false), kBeginning + one.rank_moved);
    watch.hear(0, on_channel(0, 7, true), kBeginning + one.other_came);
    watch.watch_stalls(kWarnAfter, kStall, kBeginning + one.watched);
    watch.pause(kPause);
    const auto counts_from = kBeginning + kLater + kPause;
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
  watch.hear(0, on_channel(0, 7, true), kBeginning);
  States states = on_channel(0, 6, false);
  for (int minute = 0; minute < 100; ++minute) {
    states[2].begun = static_cast<uint64_t>(minute);
    watch.hear(1, states, kBeginning + std::chrono::minutes(minute));
    EXPECT_FALSE(watch.judge(kBeginning + std::chrono::minutes(minute))) << minute;
  }
}

TEST(StallWatch, NobodyIsStalledBeforeItIsAskedOrWithoutAnybodyWaiting) {
  StallWatch early(2, kSilence);
  early.hear(0, on_channel(0, 7, true), kBeginning);
  early.hear(1, on_channel(0, 6, false), kBeginning);
  EXPECT_FALSE(early.judge(kBeginning + 100h));
  early.watch_stalls(kWarnAfter, kStall, kBeginning + 100h);
  EXPECT_FALSE(early.judge(kBeginning + 100h + 299s));
  EXPECT_TRUE(early.judge(kBeginning + 100h + 300s));

  auto idle = watch_of(2);
  for (int rank : {0, 1}) idle.hear(rank, on_channel(0, 7, false), kBeginning);
  EXPECT_FALSE(idle.judge(kBeginning + 100h));
  // The one outside has been through it already.
  idle.hear(0, on_channel(0, 7, true), kBeginning);
  EXPECT_FALSE(idle.judge(kBeginning + 100h));
}

TEST(StallWatch, WithoutALimitItOnlyWarnsAndRanksThatLeftAreForgotten) {
  StallWatch watch(3, kSilence);
  watch.watch_stalls(kWarnAfter, 0s, kBeginning);
  watch.hear(0, on_channel(0, 7, true), kBeginning);
  watch.hear(1, on_channel(0, 6, false), kBeginning);
  watch.hear(2, on_channel(0, 5, false), kBeginning);
  watch.forget(2);
  const auto warning = watch.judge(kBeginning + 100h);
  ASSERT_TRUE(warning);
  EXPECT_FALSE(warning->lost);
  EXPECT_EQ(warning->rank, 1);
  EXPECT_FALSE(watch.judge(kBeginning + 200h));
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
