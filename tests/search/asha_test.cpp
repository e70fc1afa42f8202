#include "search/asha.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace stretto::search {
namespace {

using Lengths = std::vector<int64_t>;

std::vector<Lengths> lengths_of(const std::vector<AshaBracket>& brackets) {
  std::vector<Lengths> all;
  for (const auto& bracket : brackets) all.push_back(bracket.lengths);
  return all;
}

std::vector<int64_t> trials_of(const std::vector<AshaBracket>& brackets) {
  std::vector<int64_t> all;
  for (const auto& bracket : brackets) all.push_back(bracket.max_trials);
  return all;
}

// By hand: R = min(5, log4 1024 + 1 = 6, log4 16 + 1 = 3) = 3; standard has brackets of 3 and 2
// rungs, with weights 16/3 and 4/2: of 16 trials 11.6 and 4.4, and the one left goes to the first.
TEST(AshaBrackets, StandardHasTheDeeperHalf) {
  const auto brackets = asha_brackets({}, 16, 1024);
  EXPECT_EQ(lengths_of(brackets), (std::vector<Lengths>{{64, 256, 1024}, {256, 1024}}));
  EXPECT_EQ(trials_of(brackets), (std::vector<int64_t>{12, 4}));
  for (const auto& bracket : brackets) EXPECT_EQ(bracket.max_concurrent, 4);
}

// Weights 16/3, 4/2 and 1: of 100 trials 64, 24 and 12.
TEST(AshaBrackets, ConservativeHasOneForEachNumberOfRungs) {
  const auto brackets = asha_brackets({.mode = "conservative", .max_rungs = 3}, 100, 1024);
  EXPECT_EQ(lengths_of(brackets), (std::vector<Lengths>{{64, 256, 1024}, {256, 1024}, {1024}}));
  EXPECT_EQ(trials_of(brackets), (std::vector<int64_t>{64, 24, 12}));
  for (const auto& bracket : brackets) EXPECT_EQ(bracket.max_concurrent, 12);
}

TEST(AshaBrackets, AggressiveHasOne) {
  const auto brackets = asha_brackets({.mode = "aggressive"}, 1000, 1000);
  EXPECT_EQ(lengths_of(brackets), (std::vector<Lengths>{{3, 15, 62, 250, 1000}}));
  EXPECT_EQ(trials_of(brackets), (std::vector<int64_t>{1000}));
}

TEST(AshaBrackets, AreBoundedByStepsAndTrials) {
  EXPECT_EQ(lengths_of(asha_brackets({.mode = "aggressive"}, 1000, 63)),
            (std::vector<Lengths>{{3, 15, 63}}));
  EXPECT_EQ(lengths_of(asha_brackets({.mode = "aggressive"}, 3, 1000)),
            (std::vector<Lengths>{{1000}}));
  // An exact power, where a logarithm in floating point may fall short.
  EXPECT_EQ(asha_brackets({.mode = "aggressive", .divisor = 5}, 125, 1000).front().lengths.size(),
            4u);
  EXPECT_EQ(asha_brackets({}, 1, 1).front().lengths, (Lengths{1}));
}

TEST(AshaBrackets, EachHasATrial) {
  EXPECT_EQ(trials_of(asha_brackets({.mode = "conservative", .divisor = 2}, 4, 100)),
            (std::vector<int64_t>{2, 1, 1}));
}

Asha one_bracket(Lengths lengths, int64_t max_trials, int64_t divisor = 2) {
  return Asha({{.lengths = std::move(lengths), .max_trials = max_trials, .max_concurrent = 100}},
              divisor);
}

/// A line of a table: the job that a free slot must be given, and the score that it reports.
struct Line {
  TrialId trial;
  int64_t until;
  double score;
};

void expect_table(Scheduler& scheduler, const std::vector<Line>& table) {
  for (const auto& line : table) {
    const auto job = scheduler.next(true);
    ASSERT_TRUE(job) << "trial " << line.trial << " until " << line.until;
    EXPECT_EQ(job->trial, line.trial);
    EXPECT_EQ(job->until, line.until);
    scheduler.report({.trial = job->trial, .until = job->until, .score = line.score});
  }
  EXPECT_FALSE(scheduler.next(true));
}

// Worked by hand, d = 2: after n results, the best n / 2 go on.
TEST(Asha, PromotesAsInTheTableWorkedByHand) {
  auto asha = one_bracket({1, 2, 4}, 4);
  expect_table(asha, {{0, 1, 0.9},    // n = 1: nobody
                      {1, 1, 0.5},    // n = 2: trial 1
                      {1, 2, 0.4},    // second rung, n = 1: nobody
                      {2, 1, 0.7},    // n = 3: trial 1 still
                      {3, 1, 0.3},    // n = 4: trials 3 and 1
                      {3, 2, 0.2},    // second rung, n = 2: trial 3
                      {3, 4, 0.1}});  // the end of a trial; trial 2 never goes on
}

// d = 4, three rungs, sixteen trials, each worse than the one before: every fourth result admits
// one more, the best that has not gone on, and the fourth result at 16 admits the best of all.
TEST(Asha, PromotesOneOfFourAtEachRung) {
  auto asha = one_bracket({4, 16, 64}, 16, 4);
  std::vector<Line> table;
  for (TrialId trial = 0; trial < 16; ++trial) {
    table.push_back({trial, 4, static_cast<double>(trial)});
    if (trial % 4 == 3) table.push_back({trial / 4, 16, static_cast<double>(trial / 4)});
  }
  table.push_back({0, 64, 0.0});
  expect_table(asha, table);
}

// d = 4, each better than the one before: from the fourth on the newest is the best, and goes on
// at once. That is the price of waiting for nobody.
TEST(Asha, PromotesEachNewBest) {
  auto asha = one_bracket({1, 4}, 6, 4);
  expect_table(asha, {{0, 1, 0.0},
                      {1, 1, -1.0},
                      {2, 1, -2.0},
                      {3, 1, -3.0},
                      {3, 4, -3.0},
                      {4, 1, -4.0},
                      {4, 4, -4.0},
                      {5, 1, -5.0},
                      {5, 4, -5.0}});
}

// The second of four results is among the best two only once there are four.
TEST(Asha, PromotesAnEarlierTrialThatTheLargerQuotaAdmits) {
  auto asha = one_bracket({1, 2}, 4);
  expect_table(asha,
               {{0, 1, 0.5}, {1, 1, 0.6}, {0, 2, 0.5}, {2, 1, 0.9}, {3, 1, 0.95}, {1, 2, 0.6}});
}

TEST(Asha, RanksAFailedTrialLastAndNeverPromotesIt) {
  auto asha = one_bracket({1, 2}, 2);
  ASSERT_TRUE(asha.next(true));
  asha.report({.trial = 0, .until = 1, .score = std::nullopt});
  ASSERT_TRUE(asha.next(true));
  asha.report({.trial = 1, .until = 1, .score = 1e300});
  EXPECT_EQ(asha.next(true), (Job{.trial = 1, .until = 2}));
  auto failures = one_bracket({1, 2}, 4);
  for (TrialId trial = 0; trial < 4; ++trial) {
    ASSERT_EQ(failures.next(true)->trial, trial);
    failures.report({.trial = trial, .until = 1, .score = std::nullopt});
  }
  EXPECT_FALSE(failures.next(true));
}

TEST(Asha, RanksEqualScoresByTheirTrials) {
  auto asha = one_bracket({1, 2}, 2);
  asha.next(true);
  asha.next(true);
  asha.report({.trial = 1, .until = 1, .score = 0.5});
  asha.report({.trial = 0, .until = 1, .score = 0.5});
  EXPECT_EQ(asha.next(true), (Job{.trial = 0, .until = 2}));
}

// With several slots nobody waits: while the rung is half full its best goes on.
TEST(Asha, GivesSlotsNewTrialsWhileOthersTrain) {
  auto asha = one_bracket({1, 2}, 4);
  EXPECT_EQ(asha.next(true), (Job{.trial = 0, .until = 1, .begins = true}));
  EXPECT_EQ(asha.next(true), (Job{.trial = 1, .until = 1, .begins = true}));
  asha.report({.trial = 1, .until = 1, .score = 0.5});
  EXPECT_EQ(asha.next(true), (Job{.trial = 2, .until = 1, .begins = true}));
  asha.report({.trial = 2, .until = 1, .score = 0.4});
  EXPECT_EQ(asha.next(true), (Job{.trial = 2, .until = 2}));
  asha.report({.trial = 0, .until = 1, .score = 0.1});
  EXPECT_EQ(asha.next(true), (Job{.trial = 0, .until = 2})) << "now the best of three";
}

// Four of eight trials could go on to 2 updates while the best of two could go on to 4.
TEST(Asha, PromotesFromTheHighestRungFirst) {
  auto asha = one_bracket({1, 2, 4}, 8);
  const auto report = [&](TrialId trial, int64_t until, double score) {
    asha.report({.trial = trial, .until = until, .score = score});
  };
  for (TrialId trial = 0; trial < 8; ++trial) ASSERT_TRUE(asha.next(true));
  for (TrialId trial = 0; trial < 4; ++trial) report(trial, 1, static_cast<double>(trial));
  EXPECT_EQ(asha.next(true), (Job{.trial = 0, .until = 2}));
  EXPECT_EQ(asha.next(true), (Job{.trial = 1, .until = 2}));
  for (TrialId trial = 4; trial < 8; ++trial) report(trial, 1, -static_cast<double>(trial));
  report(0, 2, 0.5);
  report(1, 2, 0.4);
  EXPECT_EQ(asha.next(true), (Job{.trial = 1, .until = 4}));
  EXPECT_EQ(asha.next(true), (Job{.trial = 7, .until = 2}));
}

TEST(Asha, BeginsNoTrialWithoutAPoint) {
  auto asha = one_bracket({1, 2}, 4);
  EXPECT_FALSE(asha.next(false));
  EXPECT_TRUE(asha.next(true));
}

// 12 and 4 trials, as in StandardHasTheDeeperHalf: who has begun less of its share is next.
TEST(Asha, SharesNewTrialsOutToBrackets) {
  Asha asha({{.lengths = {64, 256, 1024}, .max_trials = 12, .max_concurrent = 100},
             {.lengths = {256, 1024}, .max_trials = 4, .max_concurrent = 100}},
            4);
  std::vector<int64_t> brackets;
  while (const auto job = asha.next(true)) brackets.push_back(asha.bracket_of(job->trial));
  EXPECT_EQ(brackets, (std::vector<int64_t>{0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0}));
}

TEST(Asha, TrainsNoMoreOfABracketAtATimeThanItMay) {
  Asha asha({{.lengths = {1, 2}, .max_trials = 8, .max_concurrent = 2}}, 2);
  EXPECT_TRUE(asha.next(true));
  EXPECT_TRUE(asha.next(true));
  EXPECT_FALSE(asha.next(true));
  asha.report({.trial = 0, .until = 1, .score = 1});
  EXPECT_TRUE(asha.next(true));
}

TEST(Asha, KnowsWhoCanNeverGoOn) {
  auto asha = one_bracket({1, 2}, 4);  // at the end two of four go on
  const auto run = [&](double score) {
    const auto job = asha.next(true);
    asha.report({.trial = job->trial, .until = job->until, .score = score});
  };
  run(0.5);
  EXPECT_FALSE(asha.is_over(0));
  run(0.4);  // trial 1
  run(0.3);  // trial 1 at the second rung
  EXPECT_TRUE(asha.is_over(1)) << "at the last rung";
  EXPECT_FALSE(asha.is_over(0)) << "still among the best two";
  run(0.1);  // trial 2
  EXPECT_TRUE(asha.is_over(0)) << "two are better";
  run(0.1);  // trial 2 at the second rung
  asha.next(true);
  EXPECT_FALSE(asha.is_over(3)) << "it trains";
  asha.report({.trial = 3, .until = 1, .score = std::nullopt});
  EXPECT_TRUE(asha.is_over(3)) << "it failed";
}

// Whoever is called over must really never be promoted, whatever comes.
TEST(Asha, NeverPromotesWhoIsOver) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomStream random(seed);
    auto asha = one_bracket({1, 2, 4, 8}, 12 + static_cast<int64_t>(random.below(20)), 2);
    std::vector<Job> running;
    std::set<TrialId> over;
    for (;;) {
      while (running.size() < 3) {
        const auto job = asha.next(true);
        if (!job) break;
        EXPECT_FALSE(over.contains(job->trial)) << "seed " << seed;
        running.push_back(*job);
      }
      if (running.empty()) break;
      const size_t which = random.below(running.size());
      const Job done = running[which];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      const bool fails = random.below(10) == 0;
      asha.report({.trial = done.trial,
                   .until = done.until,
                   .score = fails ? std::nullopt : std::optional(random.uniform())});
      for (const auto& rung : asha.rungs()) {
        for (const auto& one : rung.competitors) {
          if (asha.is_over(one.trial)) over.insert(one.trial);
        }
      }
    }
    EXPECT_GT(over.size(), 0u);
  }
}

TEST(Asha, GoesOnWithMoreTrialsInTheSameRungs) {
  auto asha = one_bracket({1, 2}, 2);
  expect_table(asha, {{0, 1, 0.5}, {1, 1, 0.6}, {0, 2, 0.5}});
  asha.raise_budget(4);
  expect_table(asha, {{2, 1, 0.9}, {3, 1, 0.95}, {1, 2, 0.6}});
}

TEST(Asha, ShowsItsRungsWithTheirCutOff) {
  auto asha = one_bracket({1, 2}, 4);
  for (const double score : {0.5, 0.6}) {
    const auto job = asha.next(true);
    asha.report({.trial = job->trial, .until = job->until, .score = score});
  }
  asha.next(true);
  const auto rungs = asha.rungs();
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0].quota, 1u);
  EXPECT_EQ(rungs[0].cut_off, 0.5);
  ASSERT_EQ(rungs[0].competitors.size(), 2u);
  EXPECT_TRUE(rungs[0].competitors[0].went_on);
  EXPECT_FALSE(rungs[0].competitors[1].went_on);
  EXPECT_TRUE(rungs[1].is_last);
  EXPECT_TRUE(rungs[1].competitors.empty());
}

}  // namespace
}  // namespace stretto::search
