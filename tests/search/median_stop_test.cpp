#include "search/median_stop.h"

#include <gtest/gtest.h>

#include "search/whole_trials.h"

namespace stretto::search {
namespace {

void expect_next(Scheduler& scheduler, TrialId trial, int64_t until, double score) {
  const auto job = scheduler.next(true);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->trial, trial);
  EXPECT_EQ(job->until, until);
  scheduler.report({.trial = trial, .until = until, .score = score});
}

// By hand, looks at 10 and 20 of 20 updates, two others needed. Trials 0 and 1 cannot be judged at
// 10 by two others, and end. Trial 2 has 5 at 10: the means of the others up to there are 3 and 4,
// their median 3.5. Trial 3 has 3.4, and goes on. At 20 nothing is judged: it is the end.
TEST(MedianStop, StopsWhoIsWorseThanTheMedianOfMeans) {
  MedianStop stop({.check_every = 10, .min_trials = 2}, 4, 20);
  expect_next(stop, 0, 10, 3.0);
  expect_next(stop, 0, 20, 1.0);
  expect_next(stop, 1, 10, 4.0);
  expect_next(stop, 1, 20, 2.0);
  expect_next(stop, 2, 10, 5.0);
  EXPECT_TRUE(stop.is_over(2));
  expect_next(stop, 3, 10, 3.4);
  expect_next(stop, 3, 20, 9.0);
  EXPECT_FALSE(stop.next(true));
  const auto rungs = stop.rungs();
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0].cut_off, 3.5);
  EXPECT_EQ(rungs[0].quota, 3u);
}

// The best score so far counts, against means: a trial that was good once may go on.
TEST(MedianStop, ComparesTheBestSoFar) {
  MedianStop stop({.check_every = 10, .min_trials = 1}, 2, 30);
  expect_next(stop, 0, 10, 4.0);
  expect_next(stop, 0, 20, 2.0);  // mean 3
  expect_next(stop, 0, 30, 2.0);
  expect_next(stop, 1, 10, 2.5);
  expect_next(stop, 1, 20, 8.0);  // its best is 2.5
  expect_next(stop, 1, 30, 8.0);
}

// By hand: trial 0 was better at 20 than at its end, and trial 1 is the better one there.
TEST(MedianStop, ShowsTheBestSoFarWhereItJudgesAndTheLastScoreAtTheEnd) {
  MedianStop stop({.check_every = 10, .min_trials = 1}, 2, 30);
  expect_next(stop, 0, 10, 4.0);
  expect_next(stop, 0, 20, 2.0);
  expect_next(stop, 0, 30, 3.0);
  expect_next(stop, 1, 10, 2.2);
  expect_next(stop, 1, 20, 2.6);
  expect_next(stop, 1, 30, 2.5);
  const auto rungs = stop.rungs();
  ASSERT_EQ(rungs.size(), 3u);
  const auto shown = [&](size_t rung) {
    std::vector<std::pair<TrialId, std::optional<double>>> scores;
    for (const auto& one : rungs[rung].competitors) scores.emplace_back(one.trial, one.score);
    return scores;
  };
  using Scores = std::vector<std::pair<TrialId, std::optional<double>>>;
  EXPECT_EQ(shown(1), (Scores{{0, 2.0}, {1, 2.2}}));
  EXPECT_EQ(shown(2), (Scores{{1, 2.5}, {0, 3.0}}));
}

TEST(MedianStop, SparesEveryoneDuringTheGrace) {
  MedianStop stop({.check_every = 10, .grace_steps = 15, .min_trials = 1}, 2, 30);
  for (const int64_t until : {10, 20, 30}) expect_next(stop, 0, until, 1.0);
  expect_next(stop, 1, 10, 5.0);
  expect_next(stop, 1, 20, 5.0);
  EXPECT_TRUE(stop.is_over(1));
}

TEST(MedianStop, JudgesALookAtTheLastUpdateOfTheGrace) {
  MedianStop stop({.check_every = 10, .grace_steps = 20, .min_trials = 1}, 2, 30);
  for (const int64_t until : {10, 20, 30}) expect_next(stop, 0, until, 1.0);
  expect_next(stop, 1, 10, 5.0);
  EXPECT_FALSE(stop.is_over(1));
  expect_next(stop, 1, 20, 5.0);
  EXPECT_TRUE(stop.is_over(1));
  EXPECT_EQ(stop.rungs()[1].cut_off, 1.0);
}

TEST(MedianStop, LooksFiveTimesUnlessToldOtherwise) {
  MedianStop stop({}, 1, 52);
  for (const int64_t until : {10, 20, 30, 40, 50, 52}) expect_next(stop, 0, until, 1.0);
  EXPECT_FALSE(stop.next(true));
}

TEST(MedianStop, EndsAFailedTrial) {
  MedianStop stop({.check_every = 10, .min_trials = 1}, 1, 20);
  ASSERT_TRUE(stop.next(true));
  stop.report({.trial = 0, .until = 10, .score = std::nullopt});
  EXPECT_TRUE(stop.is_over(0));
  EXPECT_FALSE(stop.next(true));
}

TEST(MedianStop, ShowsATrialThatTrainsAmongThoseThatWentOn) {
  MedianStop stop({.check_every = 10, .min_trials = 1}, 1, 20);
  expect_next(stop, 0, 10, 1.0);
  EXPECT_TRUE(stop.rungs()[0].competitors[0].went_on) << "it waits for a slot";
  ASSERT_TRUE(stop.next(true));
  EXPECT_TRUE(stop.rungs()[0].competitors[0].went_on) << "it trains";
  EXPECT_EQ(stop.rungs()[0].quota, 1u);
}

// By hand: at 10, trial 1 is judged by 3. At 20 it fails, and is not judged: the means up to there
// are 2 and 1.
TEST(MedianStop, ShowsNoCutOffOfAnEarlierLookWhereATrialFailed) {
  MedianStop stop({.check_every = 10, .min_trials = 1}, 2, 30);
  expect_next(stop, 0, 10, 3.0);
  expect_next(stop, 0, 20, 1.0);
  expect_next(stop, 0, 30, 1.0);
  expect_next(stop, 1, 10, 1.0);
  ASSERT_TRUE(stop.next(true));
  stop.report({.trial = 1, .until = 20, .score = std::nullopt});
  const auto rungs = stop.rungs();
  ASSERT_EQ(rungs.size(), 3u);
  EXPECT_EQ(rungs[1].cut_off, 1.5);
  EXPECT_FALSE(rungs[1].competitors[1].went_on);
}

TEST(WholeTrials, TrainEachToItsEndAndMoreWhenTheBudgetIsRaised) {
  WholeTrials whole(2, 100);
  EXPECT_EQ(whole.next(true), (Job{.trial = 0, .until = 100, .begins = true}));
  EXPECT_FALSE(whole.next(false));
  EXPECT_EQ(whole.next(true), (Job{.trial = 1, .until = 100, .begins = true}));
  EXPECT_FALSE(whole.next(true));
  whole.report({.trial = 1, .until = 100, .score = 0.5});
  EXPECT_TRUE(whole.is_over(1));
  EXPECT_FALSE(whole.is_over(0));
  whole.raise_budget(3);
  EXPECT_EQ(whole.next(true), (Job{.trial = 2, .until = 100, .begins = true}));
}

}  // namespace
}  // namespace stretto::search
