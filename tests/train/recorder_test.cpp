#include "train/recorder.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>

#include "base/hash.h"
#include "tests/base/temp_dir.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;

/// An update of a second with a loss of 3 and ten target tokens.
TrainStep played_step() {
  TrainStep step;
  step.update.epoch = 1;
  step.update.totals = {.losses = {30}, .weights = {10}, .statistics = {20}, .counts = {10, 12}};
  step.update.seconds = 1;
  step.lr = 0.5;
  return step;
}

class RecorderTest : public ::testing::Test {
 protected:
  Recorder recorder(bool is_root = true) {
    return {task_, arena_, StopConditions({.max_steps = 100}, 0, 8), setup_, is_root};
  }
  /// Records steps up to `last`, each as play() makes it.
  template <class Play>
  void steps(Recorder& recorder, int64_t last, const Play& play) {
    while (state_.step < last) {
      state_.step += 1;
      TrainStep step = played_step();
      play(step);
      recorder.step(step, state_);
    }
  }
  void steps(Recorder& recorder, int64_t last) {
    steps(recorder, last, [](TrainStep&) {});
  }
  std::vector<report::MetricsEvent> events(const std::string& kind = "train") const {
    std::vector<report::MetricsEvent> found;
    for (const auto& event : report::read_metrics(root_ / "metrics.jsonl")) {
      if (event.event == kind) found.push_back(event);
    }
    return found;
  }
  std::vector<int64_t> steps_of(const std::string& kind) const {
    std::vector<int64_t> found;
    for (const auto& event : events(kind)) found.push_back(event.step);
    return found;
  }

  using Steps = std::vector<int64_t>;
  stretto::testing::TempDir root_;
  test::ToyTask task_;
  optim::Arena arena_{task_.model()};
  RecorderSetup setup_{.run_directory = root_.path(),
                       .report = {.tensorboard = false, .html = false},
                       .description = {.display = test::toy_display()},
                       .every = 4,
                       .num_batches = 8};
  runs::TrainState state_;
};

#if defined(__GLIBC__)
TEST_F(RecorderTest, WhatIsRecordedIsNotKeptInMemory) {
  setup_.report.html = setup_.report.tensorboard = true;
  setup_.every = 1;
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 100);
  const size_t before = mallinfo2().uordblks;
  steps(tried, 1100);
  EXPECT_LT(mallinfo2().uordblks, before + 1000 * 16) << "of a thousand events";
}
#endif

TEST_F(RecorderTest, TheFirstStepAndEachIntervalAreRecorded) {
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 9);
  EXPECT_EQ(steps_of("train"), (Steps{1, 4, 8}));
  const auto event = events().back();
  EXPECT_EQ(event.loss, 3);
  EXPECT_EQ(event.number("nll"), 2);
  EXPECT_EQ(event.number("target_tokens"), 10);
  EXPECT_EQ(event.lr, 0.5);
  EXPECT_FALSE(event.processes) << "there is one";
  EXPECT_FALSE(event.unscheduled);
}

TEST_F(RecorderTest, ASkippedStepAndOneWithANoteAreRecordedBetweenIntervals) {
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 7, [&](TrainStep& step) {
    step.skipped = state_.step == 6;
    if (state_.step == 7) step.note = "the loss is a spike";
  });
  EXPECT_EQ(steps_of("train"), (Steps{1, 4, 6, 7}));
  const auto found = events();
  EXPECT_EQ(found[2].skipped, true);
  EXPECT_EQ(found[2].unscheduled, true);
  EXPECT_EQ(found[3].note, "the loss is a spike");
  EXPECT_FALSE(found[3].skipped);
}

TEST_F(RecorderTest, HowLongAnUpdateWaitedForItsDataIsRecorded) {
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 1, [](TrainStep& step) { step.update.data_wait_seconds = 0.25; });
  EXPECT_EQ(events().front().data_wait_seconds, 0.25);
}

TEST_F(RecorderTest, TheRateIsThatSinceTheLastScheduledRecord) {
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 8, [&](TrainStep& step) {
    step.update.seconds = state_.step <= 4 ? 1 : 2;
    if (state_.step == 6) step.note = "begins no window";
  });
  const auto found = events();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[1].number("tokens_per_second"), 10);
  EXPECT_EQ(found[3].number("tokens_per_second"), 5);
}

TEST_F(RecorderTest, SeveralProcessesRecordWhatTheirCommunicationCost) {
  setup_.num_processes = 3;
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 1, [](TrainStep& step) {
    step.communication = {.hidden_seconds = 0.5, .wait_seconds = 0.25};
    step.noise_scale = 40;
  });
  const auto event = events().front();
  EXPECT_EQ(event.processes, 3);
  EXPECT_EQ(event.comm_seconds, 0.75);
  EXPECT_EQ(event.comm_wait_seconds, 0.25);
  EXPECT_EQ(event.noise_scale, 40);
}

// A rollback cuts them away with everything behind its checkpoint.
TEST_F(RecorderTest, NotesOfTheDataAreRecordedWheneverTrainingGoesOn) {
  std::vector<int64_t> asked;
  setup_.notes_at = [&](int64_t step) {
    asked.push_back(step);
    return std::vector<std::string>{"note of step " + std::to_string(step)};
  };
  Recorder tried = recorder();
  tried.open(state_);
  steps(tried, 4);
  state_.metrics = tried.metrics_mark();
  steps(tried, 8);
  state_.step = 4;
  tried.open(state_);
  EXPECT_EQ(asked, (Steps{0, 4}));
  EXPECT_EQ(steps_of("train"), (Steps{1, 4}));
  const auto notes = events("data");
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(notes[0].note, "note of step 0");
  EXPECT_EQ(notes[0].epoch, 1);
  EXPECT_EQ(notes[1].note, "note of step 4");
}

TEST_F(RecorderTest, AValidationIsRecordedWithTheScoresOfTheTask) {
  Recorder tried = recorder();
  tried.open(state_);
  state_.step = 8;
  state_.seconds = 12;
  tried.validation(test::toy_validation(2), state_, /*is_best=*/true);
  const auto found = events("valid");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].step, 8);
  EXPECT_EQ(found[0].loss, 2);
  EXPECT_EQ(found[0].number("nll"), 2);
  EXPECT_EQ(found[0].seconds, 12);
}

TEST_F(RecorderTest, TheEndHasItsReasonAndTheHashOfTheWeights) {
  Recorder tried = recorder();
  tried.open(state_);
  state_.step = 12;
  tried.end(state_, "train.max_steps reached", {});
  const auto found = events("end");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason, "train.max_steps reached");
  EXPECT_EQ(found[0].weights_hash, hex64(arena_.weights_hash()));
}

TEST_F(RecorderTest, AProcessThatLeavesEndsNoRun) {
  Recorder tried = recorder();
  tried.open(state_);
  tried.leave(state_, LeftBy::kSignal, /*saved=*/true);
  EXPECT_TRUE(events("end").empty());
}

TEST_F(RecorderTest, OtherRanksWriteNothing) {
  setup_.notes_at = [](int64_t) -> std::vector<std::string> { throw std::logic_error("asked"); };
  Recorder tried = recorder(/*is_root=*/false);
  tried.fact("schedule", "linear");
  tried.open(state_);
  tried.activity("saving");
  steps(tried, 4);
  tried.validation(test::toy_validation(2), state_, true);
  tried.end(state_, "train.max_steps reached", {});
  EXPECT_FALSE(tried.metrics_mark());
  EXPECT_TRUE(fs::is_empty(root_.path()));
}

}  // namespace
}  // namespace stretto::train
