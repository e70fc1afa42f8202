#include "distributed/watch/silence_watch.h"

#include <gtest/gtest.h>

namespace stretto::distributed {
namespace {

using namespace std::chrono_literals;

const Clock::time_point kStart{1000h};
constexpr auto kTimeout = 60s;

// Passes as a heartbeat makes them, up to and including `until`.
void pass_until(SilenceWatch& watch, Clock::time_point& now, Clock::time_point until) {
  while (now + 2s < until) {
    now += 2s;
    EXPECT_FALSE(watch.pass(now));
  }
  now = until;
  EXPECT_FALSE(watch.pass(now));
}

TEST(SilenceWatch, ARankIsSilentFromTheTimeoutOnAndNotBefore) {
  SilenceWatch watch(3, kTimeout, kStart);
  watch.forget(0);
  watch.hear(1, kStart + 10s);
  EXPECT_TRUE(watch.judge(kStart + kTimeout - 1ns).empty());
  const auto first = watch.judge(kStart + kTimeout);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].rank, 2);
  EXPECT_EQ(first[0].time, Clock::duration(kTimeout));
  EXPECT_EQ(watch.judge(kStart + 10s + kTimeout - 1ns).size(), 1u);
  EXPECT_EQ(watch.judge(kStart + 10s + kTimeout).size(), 2u);
  watch.forget(2);
  EXPECT_TRUE(watch.forgotten(2));
  EXPECT_EQ(watch.judge(kStart + 100h).size(), 1u);
}

TEST(SilenceWatch, WhoDidNotRunHasHeardNobodyAndBeginsAnew) {
  SilenceWatch watch(2, kTimeout, kStart);
  watch.forget(0);
  Clock::time_point now = kStart;
  pass_until(watch, now, kStart + 40s);
  now += 10h;
  const auto gap = watch.pass(now);
  ASSERT_TRUE(gap);
  EXPECT_EQ(*gap, Clock::duration(10h));
  EXPECT_TRUE(watch.judge(now).empty());
  const auto again = now + kTimeout;
  pass_until(watch, now, again - 1s);
  EXPECT_TRUE(watch.judge(now).empty());
  pass_until(watch, now, again);
  EXPECT_EQ(watch.judge(now).size(), 1u);
}

TEST(SilenceWatch, AShortPauseOfItsOwnForgivesNothing) {
  SilenceWatch watch(2, kTimeout, kStart);
  EXPECT_FALSE(watch.pass(kStart + kTimeout / 4));
  EXPECT_TRUE(watch.pass(kStart + kTimeout / 4 + kTimeout / 4 + 1ms));
}

TEST(SilenceWatch, LooksTenTimesInATimeoutAndAtLeastEveryTwoSeconds) {
  EXPECT_EQ(SilenceWatch::interval_of(1s), Clock::duration(100ms));
  EXPECT_EQ(SilenceWatch::interval_of(20s), Clock::duration(2s));
  EXPECT_EQ(SilenceWatch::interval_of(600s), Clock::duration(2s));
}

}  // namespace
}  // namespace stretto::distributed
