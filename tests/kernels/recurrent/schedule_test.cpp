#include "kernels/recurrent/schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

TEST(RecurrentSchedule, RanksAreLongestFirstAndRowsFollowTheDirection) {
  const Schedule schedule(cases::lengths({0, 2, 2, 5, 7}), true);
  EXPECT_EQ(schedule.batch(), 4);
  EXPECT_EQ(schedule.steps(), 3);
  EXPECT_EQ(schedule.rows(), 7);
  const std::vector<int64_t> sequences{2, 0, 3, 1};
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(schedule.sequence(rank), sequences[static_cast<size_t>(rank)]);
  EXPECT_EQ(schedule.active(0), 3);
  EXPECT_EQ(schedule.active(1), 3);
  EXPECT_EQ(schedule.active(2), 1);
  EXPECT_EQ(schedule.row(0, 0), 4);
  EXPECT_EQ(schedule.row(0, 2), 2);
  EXPECT_EQ(schedule.row(2, 1), 5);
}

TEST(RecurrentSchedule, EveryRowOfEveryStepIsDoneOnceInTheOrderOfTime) {
  const Schedule schedule(cases::lengths({0, 2, 9, 10, 13}), false);
  for (const auto& [threads, bundles] :
       {std::pair{1, 0}, std::pair{2, 1}, std::pair{3, 2}, std::pair{4, 4}, std::pair{5, 3}})
    for (const Time time : {Time::kForward, Time::kBackward}) {
      const cases::Team team(threads, bundles);
      std::vector<int> done(13, 0);
      std::vector<int64_t> last(4, -1);
      std::atomic<bool> in_order = true;
      run_steps(
          schedule, 100, time, [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
            const int64_t count = bundle.rows(schedule.active(step));
            const ThreadTeam::Range mine = team.range(count);
            team.wait();
            for (int64_t i = mine.begin; i < mine.end; ++i) {
              const int64_t rank = bundle.rank(i);
              ++done[static_cast<size_t>(schedule.row(rank, step))];
              int64_t& before = last[static_cast<size_t>(rank)];
              const bool follows =
                  before < 0 || (time == Time::kForward ? step == before + 1 : step == before - 1);
              if (!follows) in_order = false;
              before = step;
            }
            team.wait();
          });
      EXPECT_EQ(done, std::vector<int>(13, 1)) << threads << " threads, " << bundles;
      EXPECT_TRUE(in_order);
    }
}

}  // namespace
}  // namespace stretto::kernels
