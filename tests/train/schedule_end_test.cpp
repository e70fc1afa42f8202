#include "train/schedule_end.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::train {
namespace {

constexpr int64_t kEpochBatches = 8;  // micro-batches an epoch

optim::ScheduleOptions cosine(int64_t total_steps = 0) {
  return {.name = "cosine", .warmup_steps = 2, .total_steps = total_steps};
}

TEST(TrainScheduleEnd, IsThatOfTheEpochsWhereNothingElseIsGiven) {
  struct Row {
    int64_t total_steps, max_steps, max_epochs, num_batches, update_freq, updates;
  };
  for (const Row& row : {
           Row{0, 0, 3, 8, 1, 24},
           Row{0, 0, 3, 8, 3, 9},  // 3 + 3 + 2 micro-batches
           Row{0, 0, 3, 8, 8, 3},
           Row{0, 0, 3, 8, 100, 3},
           Row{0, 0, 1, 1, 1, 1},
           Row{0, 50, 3, 8, 1, 50},
           Row{70, 50, 3, 8, 1, 70},
           Row{70, 0, 3, 8, 1, 70},
           Row{0, 0, 0, 8, 1, 0},  // train.max_hours alone
           Row{0, 0, int64_t{1} << 62, 8, 1, int64_t{1} << 53},
       }) {
    const TrainOptions train{
        .max_steps = row.max_steps, .max_epochs = row.max_epochs, .update_freq = row.update_freq};
    EXPECT_EQ(ScheduleEnd(cosine(row.total_steps), train, row.num_batches).updates(), row.updates)
        << row.max_epochs << " epochs of " << row.num_batches;
  }
}

TEST(TrainScheduleEnd, IsKeptInCheckpointsOnlyWhereEpochsMakeIt) {
  const TrainOptions epochs{.max_epochs = 3}, steps{.max_steps = 50};
  EXPECT_TRUE(ScheduleEnd(cosine(), steps, kEpochBatches).state().empty());
  EXPECT_TRUE(ScheduleEnd(cosine(70), epochs, kEpochBatches).state().empty());
  const optim::ScheduleOptions endless{.name = "inverse_sqrt"};
  EXPECT_TRUE(ScheduleEnd(endless, epochs, kEpochBatches).state().empty());
  const std::map<std::string, double> expected{{"epochs", 3}, {"updates", 24}};
  EXPECT_EQ(ScheduleEnd(cosine(), epochs, kEpochBatches).state(), expected);
  optim::ScheduleOptions share = endless;
  share.warmup_ratio = 0.1;
  EXPECT_EQ(ScheduleEnd(share, epochs, kEpochBatches).state(), expected);
}

TEST(TrainScheduleEnd, IsThatOfTheFirstStartForAsManyEpochs) {
  const TrainOptions three{.max_epochs = 3}, four{.max_epochs = 4};
  const auto first = ScheduleEnd(cosine(), three, kEpochBatches).state();
  ScheduleEnd grown(cosine(), three, 2 * kEpochBatches);
  EXPECT_EQ(grown.updates(), 48);
  grown.restore(first);
  EXPECT_EQ(grown.updates(), 24);
  ScheduleEnd extended(cosine(), four, kEpochBatches);
  extended.restore(first);
  EXPECT_EQ(extended.updates(), 32);
  ScheduleEnd older(cosine(), three, kEpochBatches);
  older.restore({});
  EXPECT_EQ(older.updates(), 24);
}

TEST(TrainScheduleEnd, LeavesRoomForTheDecay) {
  const TrainOptions train{.max_epochs = 3};
  auto schedule = cosine();
  schedule.warmup_steps = 23;
  EXPECT_NO_THROW(ScheduleEnd(schedule, train, kEpochBatches).require_room());
  schedule.warmup_steps = 24;
  const Error error = testing::failure(
      ExitCode::kUsage, [&] { ScheduleEnd(schedule, train, kEpochBatches).require_room(); });
  EXPECT_EQ(std::string(error.what()),
            "schedule.name: the decay of \"cosine\" would begin at update 24 and end at 24, the "
            "last of 3 epochs");
  const Error bound = testing::failure(ExitCode::kUsage, [&] {
    ScheduleEnd(schedule, train, kEpochBatches).require_room(NumBatches::kAtMost);
  });
  EXPECT_EQ(std::string(bound.what()),
            "schedule.name: the decay of \"cosine\" would begin at update 24, and 3 epochs of this "
            "data have at most 24 updates");
  schedule.name = "inverse_sqrt";
  EXPECT_NO_THROW(ScheduleEnd(schedule, train, kEpochBatches).require_room()) << "it has no end";
  schedule = {.name = "tri_stage", .warmup_steps = 4, .hold_steps = 20};
  EXPECT_THROW(ScheduleEnd(schedule, train, kEpochBatches).require_room(), Error);
}

// So that a bound of the micro-batches, for which there is no room, refuses nothing that has some.
TEST(TrainScheduleEnd, HasNoLessRoomWithMoreMicroBatches) {
  const TrainOptions train{.max_epochs = 1};
  const std::vector<optim::ScheduleOptions> schedules{
      {.name = "cosine", .warmup_steps = 30},
      {.name = "linear", .warmup_steps = 0, .warmup_ratio = 0.1},
      {.name = "tri_stage", .warmup_steps = 0, .warmup_ratio = 0.9, .hold_steps = 5}};
  for (const auto& schedule : schedules) {
    bool had_room = false;
    for (int64_t batches = 1; batches < 300; ++batches) {
      bool has_room = true;
      try {
        ScheduleEnd(schedule, train, batches).require_room();
      } catch (const Error&) {
        has_room = false;
      }
      EXPECT_TRUE(has_room || !had_room) << schedule.name << ", " << batches;
      had_room = has_room;
    }
    EXPECT_TRUE(had_room) << schedule.name;
  }
}

TEST(TrainScheduleEnd, IsToldWhereTheConfigurationDoesNotSayIt) {
  const TrainOptions epochs{.max_epochs = 3}, steps{.max_steps = 50};
  EXPECT_EQ(ScheduleEnd(cosine(), epochs, kEpochBatches).text(),
            "cosine over 24 updates (3 epochs), of which 2 are warm-up");
  auto share = cosine();
  share.warmup_ratio = 0.1;
  EXPECT_EQ(ScheduleEnd(share, steps, kEpochBatches).text(),
            "cosine over 50 updates, of which 5 are warm-up");
  EXPECT_EQ(ScheduleEnd(cosine(), steps, kEpochBatches).text(), "");
  EXPECT_EQ(ScheduleEnd({.name = "inverse_sqrt"}, epochs, kEpochBatches).text(), "");
}

}  // namespace
}  // namespace stretto::train
