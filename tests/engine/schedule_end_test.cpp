#include "train/schedule_end.h"

#include <gtest/gtest.h>

#include "experiment/experiment_schema.h"
#include "optim/schedule.h"

namespace stretto::experiment {
namespace {

// What may change when a run goes on, the rules and the linter ask decays_to_an_end(); the
// schedules themselves know better.
TEST(ScheduleEnd, IsKnownOfEachScheduleThatLooksAtIt) {
  Experiment options;
  const auto schema = experiment_schema(options);
  size_t ending = 0;
  for (const auto& name : schema.find("schedule.name")->range.choices) {
    options.schedule = {.name = name, .warmup_steps = 10};
    if (name == "piecewise") {
      options.schedule.boundaries = {20};
      options.schedule.multipliers = {0.5};
    }
    bool looks_at_its_end = false;
    for (int64_t step = 0; step < 300; ++step) {
      const auto rate = [&](int64_t end) {
        return optim::learning_rate(options.schedule, 1.0,
                                    {.step = step, .total_steps = end, .width = 8});
      };
      looks_at_its_end = looks_at_its_end || rate(100) != rate(200);
    }
    EXPECT_EQ(options.schedule.decays_to_an_end(), looks_at_its_end) << name;
    ending += looks_at_its_end ? 1 : 0;
  }
  EXPECT_GE(ending, 4U);
}

TEST(PlannedUpdates, AreThoseOfStepsOrEpochsWhicheverEndFirst) {
  train::TrainOptions options;
  options.update_freq = 3;
  EXPECT_EQ(train::planned_updates(options, 8), 0) << "nobody knows";
  options.max_epochs = 2;
  EXPECT_EQ(train::planned_updates(options, 8), 6) << "3 + 3 + 2 micro-batches an epoch";
  options.max_steps = 5;
  EXPECT_EQ(train::planned_updates(options, 8), 5);
  options.max_steps = 7;
  EXPECT_EQ(train::planned_updates(options, 8), 6);
  options.max_epochs = 0;
  EXPECT_EQ(train::planned_updates(options, 8), 7);
}

}  // namespace
}  // namespace stretto::experiment
