#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "runs/average.h"
#include "tests/train/failing_runs.h"
#include "train/forensics/forensics_report.h"
#include "train/trainer.h"

// What updates that are left out do to everything that evolves over steps: rates, scales,
// checkpoints, validations.
namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using test::events, test::FailingTask, test::final_hash;

class TrainerFailuresTest : public test::FailingRuns {};

// fairseq skips an update without an increment of num_updates, which its schedules count.
TEST_F(TrainerFailuresTest, AnUpdateThatIsLeftOutMovesNeitherWarmUpNorSchedule) {
  struct Row {
    double share;  // of the peak
    bool skipped;
    double scale;
  };
  const std::vector<Row> table{{0, true, 512},     {0, true, 256},     {0, true, 128},  // overflows
                               {0, false, 64},     {0.25, false, 64},  {0.5, false, 64},
                               {0.75, false, 64},  // warm-up
                               {1, true, 64},      // NaN
                               {1, false, 32},     {0.875, false, 32}, {0.75, false, 32},
                               {0.625, false, 32}, {0.5, false, 32},   {0.375, false, 32}};
  auto whole = setup("whole"), parts = setup("parts");
  for (auto* run : {&whole, &parts}) {
    run->schedule = {.name = "linear", .warmup_steps = 4, .warmup_init_lr = 0, .total_steps = 12};
    run->train.loss_scale = {.name = "fairseq", .init = 512, .window = 1000};
    run->train.max_steps = 10;  // of which the four that are left out are none
  }
  const auto prepare = [](FailingTask& task) {
    task.largest_scale = [](int64_t) { return 64; };
    task.nans[8] = 2;
  };
  train(whole, prepare);
  train(parts, prepare, {2, 5, 8});  // 8: right behind the NaN
  for (const auto& run : {whole, parts}) {
    const auto updates = events(run, "train");
    ASSERT_EQ(updates.size(), table.size());
    for (size_t i = 0; i < table.size(); ++i) {
      EXPECT_DOUBLE_EQ(updates[i].lr.value(), kPeak * table[i].share) << "step " << i + 1;
      EXPECT_EQ(updates[i].skipped.value_or(false), table[i].skipped) << "step " << i + 1;
      EXPECT_EQ(updates[i].loss_scale.value(), table[i].scale) << "step " << i + 1;
    }
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));
}

TEST_F(TrainerFailuresTest, AScalerThatLooksForItsScaleNeitherStopsARunNorSendsItBack) {
  for (const char* policy : {"stop", "rollback"}) {
    for (const char* scaler : {"fairseq", "backoff", "logmax"}) {
      auto run = setup(std::string(policy) + "_" + scaler);
      run.train.forensics = {.policy = policy, .stop_after = 1};
      run.train.loss_scale = {
          .name = scaler, .init = 512, .min = 0.25, .max = 1024, .window = 1000};
      run.train.save_every = 3;
      run.train.keep_last = 100;
      run.train.max_steps = 16;
      // The second row of overflows begins at checkpoint 9.
      train(run, [](FailingTask& task) {
        task.largest_scale = [](int64_t step) { return step < 10 ? 64 : 2; };
      });
      const auto updates = events(run, "train");
      const int64_t skipped = skipped_of(updates);
      EXPECT_EQ(static_cast<int64_t>(updates.size()), 16 + skipped);
      for (const auto& update : updates) EXPECT_LE(update.lr.value(), kPeak);
      EXPECT_GE(skipped, 1) << scaler << ": nothing overflowed";
      EXPECT_DOUBLE_EQ(updates.back().lr.value(), kPeak) << "the rate was made smaller";
      EXPECT_TRUE(undone(run).empty());
    }
  }
}

// Adam divides by 1 - beta^number: its first step has the length of the rate whatever the gradient,
// and only the first.
TEST_F(TrainerFailuresTest, TheOptimizerDoesNotCountAnUpdateThatIsLeftOut) {
  auto run = setup("run");
  run.optim.name = "adam";
  run.optim.beta1 = 0.9;
  run.optim.beta2 = 0.98;
  run.schedule.warmup_steps = 0;
  run.train.loss_scale = {.name = "fairseq", .init = 512, .window = 1000};
  run.train.max_steps = 1;
  FailingTask task, fresh;
  task.largest_scale = [](int64_t) { return 64; };
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  ASSERT_EQ(events(run, "train").size(), 4U) << "three overflows";
  const auto after = task.model().parameters(), before = fresh.model().parameters();
  for (size_t i = 0; i < after.size(); ++i) {
    const auto moved = (after[i] - before[i]).abs();
    EXPECT_NEAR(moved.min().item<double>(), kPeak, 1e-3 * kPeak);
    EXPECT_NEAR(moved.max().item<double>(), kPeak, 1e-3 * kPeak);
  }
}

TEST_F(TrainerFailuresTest, ARunEndsWhenItHasMadeItsUpdatesHoweverManyWereLeftOut) {
  auto run = setup("run");
  run.schedule = {.name = "linear", .warmup_steps = 2, .warmup_init_lr = 0};  // to max_steps
  run.train.forensics.max_reports = 0;
  ::testing::internal::CaptureStderr();
  train(run, [](FailingTask& task) { task.nans[3] = task.nans[4] = task.nans[12] = 1; });
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto updates = events(run, "train");
  EXPECT_EQ(updates.size(), 15U);
  EXPECT_EQ(skipped_of(updates), 3);
  EXPECT_DOUBLE_EQ(updates.back().lr.value(), kPeak / 10) << "the schedule came to its end";
  EXPECT_EQ(checkpoints(run).back(), 15) << "names count steps";
  EXPECT_EQ(events(run, "end").front().step, 15);
  EXPECT_NE(log.find("finished at step 15"), std::string::npos) << log;
  EXPECT_NE(log.find("3 steps were skipped"), std::string::npos) << log;
  EXPECT_NE(log.find("step 15/15 100%"), std::string::npos) << log;
}

/// What an earlier version, whose train.max_steps counted skipped updates too, left of a run.
void leave_old_checkpoint(const TrainerSetup& run, int64_t step, int64_t skipped) {
  FailingTask task;
  optim::Arena arena(task.model());
  const auto optimizer = optim::make_optimizer(run.optim, arena);
  runs::Checkpointer checkpointer(run.run_directory, run.identity, run.train.checkpoints_kept(),
                                  {.in_background = false});
  checkpointer.save(arena, *optimizer,
                    {.step = step,
                     .epoch = step / 8,
                     .batch_index = step % 8,
                     .skipped_updates = skipped,
                     .counts_attempts = true});
}

TEST_F(TrainerFailuresTest, ARunThatAnEarlierVersionFinishedStaysFinishedUntilItGetsMoreUpdates) {
  auto run = setup("run");  // of 12 updates
  leave_old_checkpoint(run, /*step=*/12, /*skipped=*/3);
  for (int time = 0; time < 2; ++time) {
    ::testing::internal::CaptureStderr();
    train(run, [](FailingTask&) {});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("finished at step 12"), std::string::npos) << log;
    EXPECT_NE(log.find("3 steps were skipped; they counted towards train.max_steps when this run "
                       "ended: raise it to go on"),
              std::string::npos)
        << log;
    EXPECT_TRUE(events(run, "train").empty());
    EXPECT_EQ(events(run, "valid").size(), 1U);
  }
  run.train.max_steps = 13;
  train(run, [](FailingTask&) {});
  EXPECT_EQ(events(run, "train").size(), 4U) << "9 updates were made, and 13 are wanted";
  EXPECT_EQ(events(run, "end").front().step, 16);
}

TEST_F(TrainerFailuresTest, ARunThatAnEarlierVersionLeftUnfinishedMakesAllItsUpdates) {
  auto run = setup("run");
  leave_old_checkpoint(run, /*step=*/10, /*skipped=*/3);
  train(run, [](FailingTask&) {});
  EXPECT_EQ(events(run, "end").front().step, 15);
}

// train.precision = "auto_fp16" chooses fp16, and with it a scaler, on some machines only.
TEST_F(TrainerFailuresTest, ARunGoesOnInThePrecisionOfAnotherMachine) {
  const optim::Precision full{}, half{.compute = kernels::Compute::kFp16, .name = "", .why = ""};
  for (const bool to_half : {true, false}) {
    auto run = setup(to_half ? "to_half" : "to_full");
    run.precision = to_half ? full : half;
    train_until(run, [](FailingTask&) {}, {5});
    run.precision = to_half ? half : full;
    ::testing::internal::CaptureStderr();
    train(run, [](FailingTask&) {});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find(to_half ? "the loss scale begins anew, at 128"
                               : "the loss scale begins anew, at 1"),
              std::string::npos)
        << log;
    const auto updates = events(run, "train");
    ASSERT_EQ(updates.size(), 12U);
    EXPECT_EQ(updates[4].loss_scale.value(), to_half ? 1 : 128);
    EXPECT_EQ(updates[5].loss_scale.value(), to_half ? 128 : 1);
  }
}

TEST_F(TrainerFailuresTest, FiftyOverflowsInARowStopTheRunUnderEachPolicy) {
  for (const char* policy : {"skip", "stop", "rollback"}) {
    auto run = setup(policy);
    run.train.forensics = {.policy = policy, .stop_after = 1, .max_reports = 0};
    run.train.loss_scale = {.name = "fairseq", .init = 1, .min = 1e-30};
    run.train.max_steps = 100;
    FailingTask task;
    task.largest_scale = [](int64_t) { return 0; };
    const auto error = error_of(run, task);
    ASSERT_TRUE(error);
    EXPECT_NE(std::string(error->what()).find("in 50 updates in a row"), std::string::npos)
        << error->what();
    EXPECT_EQ(events(run, "train").size(), 50U);
  }
}

// Twelve halvings to the scale of a large micro-batch, and thirty from a first scale that is far
// off: no warning, no report, and none of train.forensics.max_reports is used up.
TEST_F(TrainerFailuresTest, AScalerThatLooksForItsFirstScaleWritesNoReport) {
  struct Row {
    optim::LossScaleOptions scaler;
    double largest;
    int64_t overflows;
  };
  const Row rows[] = {{{.name = "backoff"}, 4, 12},
                      {{.name = "backoff"}, 0.25, 16},
                      {{.name = "fairseq", .init = 0x1p30}, 1, 30}};
  for (const auto& [scaler, largest, overflows] : rows) {
    auto run = setup(scaler.name + std::to_string(overflows));
    run.train.loss_scale = scaler;
    run.train.max_steps = overflows + 8;
    run.train.forensics.max_reports = 1;
    ::testing::internal::CaptureStderr();
    train(run, [limit = largest, step = overflows + 5](FailingTask& task) {
      task.largest_scale = [limit](int64_t) { return limit; };
      task.nans[step] = 2;
    });
    const std::string log = ::testing::internal::GetCapturedStderr();
    const auto updates = events(run, "train");
    for (int64_t i = 0; i < overflows; ++i) {
      EXPECT_TRUE(updates[static_cast<size_t>(i)].skipped.value_or(false)) << i;
    }
    EXPECT_EQ(updates.back().loss_scale.value(), largest / 2) << "halved once more by the NaN";
    const auto first = log.find("first not finite");
    EXPECT_NE(first, std::string::npos) << "of the NaN";
    EXPECT_EQ(log.find("first not finite", first + 1), std::string::npos) << log;
    EXPECT_TRUE(
        fs::exists(run.run_directory / "forensics" / (store::step_name(overflows + 5) + ".json")));
  }
}

// What the error says is then done.
TEST_F(TrainerFailuresTest, TheAdviceOfAStopNamesACheckpointThatIsThereAndCanBeFollowed) {
  struct Row {
    int64_t fails, keep_last, good;
    const char* why;
  };
  const Row rows[] = {{3, 2, 0, "nothing is saved"},
                      {5, 2, 0, "nothing finite followed the first"},
                      {9, 2, 4, "nothing finite followed the second"},
                      {9, 1, 0, "the good one is gone"},
                      {11, 2, 8, "it is the last"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.why);
    auto run = setup("fails" + std::to_string(row.fails) + "_" + std::to_string(row.keep_last));
    run.train.keep_last = row.keep_last;
    run.train.keep_best = 0;
    run.train.save_in_background = false;
    run.train.forensics = {.policy = "stop", .stop_after = 1, .max_reports = 0};
    FailingTask failing;
    failing.nans[row.fails] = FailingTask::kAlways;
    const auto error = error_of(run, failing);
    ASSERT_TRUE(error);
    const std::string advice = error->advice();
    if (row.good == 0) {
      EXPECT_NE(advice.find("a new run (--run NEW)"), std::string::npos) << advice;
      EXPECT_EQ(advice.find("rollback"), std::string::npos) << advice;
      continue;
    }
    const fs::path checkpoint = run.run_directory / "checkpoints" / store::step_name(row.good);
    EXPECT_NE(advice.find("(--run NEW train.init_from=" + checkpoint.string() + ")"),
              std::string::npos)
        << advice;
    EXPECT_NE(advice.find("or resume this run with train.forensics.policy=rollback"),
              std::string::npos)
        << advice;
    auto anew = setup(run.run_directory.filename().string() + "_new");
    anew.train.init_from = checkpoint.string();
    anew.optim.lr = run.optim.lr / 2;
    train(anew, [](FailingTask&) {});
    auto back = run;
    back.train.forensics.policy = "rollback";
    train(back, [&](FailingTask& task) { task.nans[row.fails] = 1; });
    EXPECT_DOUBLE_EQ(events(back, "train").back().lr.value(), kPeak / 2);
  }
}

TEST_F(TrainerFailuresTest, TheStopOfALossScalerNamesWhatSetItsFloorAndFp16sRemedies) {
  struct Row {
    const char* precision;
    kernels::Compute compute;
    optim::LossScaleOptions scaler;
    std::string advice;  ///< begins like this
  };
  const std::string other = "use train.precision = \"mixed_bf16\"";
  const Row rows[] = {
      {"fp32",
       kernels::Compute::kFp32,
       {.name = "backoff", .init = 8, .min = 8},
       "lower train.loss_scale.min, 8; or try a lower optim.lr"},
      {"mixed_fp16",
       kernels::Compute::kFp16,
       {.name = "fairseq", .init = 8, .min = 5},
       "lower train.loss_scale.min, 5; or " + other},
      {"mixed_fp16", kernels::Compute::kFp16, {.name = "fairseq", .init = 2e-4}, other},
      {"mixed_bf16",
       kernels::Compute::kBf16,
       {.name = "fairseq", .init = 2e-4},
       "try a lower optim.lr, optim.clip_norm = 1.0 or a longer"}};
  for (const Row& row : rows) {
    auto run = setup(row.precision + std::to_string(row.scaler.init));
    run.precision = {.compute = row.compute, .name = row.precision, .why = ""};
    run.train.loss_scale = row.scaler;
    run.train.forensics.max_reports = 0;
    FailingTask task;
    task.largest_scale = [](int64_t) { return 0; };
    const auto error = error_of(run, task);
    ASSERT_TRUE(error);
    EXPECT_TRUE(error->advice().starts_with(row.advice)) << error->advice();
  }
}

TEST_F(TrainerFailuresTest, AScaleThatGrowsStaysInTheRangeOfFp32) {
  auto run = setup("run");
  run.train.loss_scale = {.name = "fairseq", .init = 1e36, .factor = 1000, .window = 1};
  run.train.forensics.max_reports = 0;
  train(run, [](FailingTask&) {});
  const auto updates = events(run, "train");
  EXPECT_EQ(
      std::ranges::count_if(updates, [](const auto& e) { return !e.skipped.value_or(false); }), 12);
  EXPECT_EQ(updates.at(1).loss_scale.value(), optim::kLargestLossScale);
}

TEST_F(TrainerFailuresTest, ASaveThatFallsDueOnAFailedUpdateComesAfterTheNextGoodOne) {
  struct Row {
    Steps failing, saved;
    int64_t max_epochs = 0;
  };
  const std::vector<Row> table{{{}, {4, 8, 12, 14}},
                               {{8}, {4, 9, 12, 15}},
                               {{8, 9, 10}, {4, 11, 12, 16, 17}},
                               {{4, 5, 6, 7, 8, 9}, {10, 12, 16, 20}},
                               {{3, 4, 8, 12}, {5, 9, 13, 16, 18}},
                               {{11, 12, 13, 14}, {4, 8, 15, 16, 18}},
                               {{12, 13, 14, 15, 16}, {4, 8, 16}, 2}};  // the end always saves
  for (size_t row = 0; row < table.size(); ++row) {
    auto run = setup("row" + std::to_string(row));
    run.train.max_steps = 14;
    run.train.max_epochs = table[row].max_epochs;
    run.train.keep_last = 100;
    run.train.forensics.max_reports = 0;
    train(run, [&](FailingTask& task) {
      for (const int64_t step : table[row].failing) task.nans[step] = 1;
    });
    EXPECT_EQ(checkpoints(run), table[row].saved) << "row " << row;
  }
}

TEST_F(TrainerFailuresTest, ANewBestIsSavedAtOnceWithTheWeightsThatWereValidated) {
  auto run = setup("run"), undisturbed = setup("undisturbed");
  for (auto* each : {&run, &undisturbed}) {
    each->eval.every = 4;
    each->train.save_every = 100;
    each->train.keep_last = 1;
    each->train.forensics.max_reports = 0;
  }
  run.train.max_steps = 14;
  undisturbed.train.max_steps = 7;
  const auto nll_at = [](int64_t step) { return step == 8 ? 1.0 : 2.0; };
  train(run, [&](FailingTask& task) {
    task.nll_at = nll_at;
    task.nans[8] = 1;
  });
  train(undisturbed, [&](FailingTask& task) { task.nll_at = nll_at; });
  EXPECT_EQ(checkpoints(run), (Steps{8, 15}));
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "best").filename(), "step_00000008");
  const auto weights = [](const TrainerSetup& of, const char* name) {
    FailingTask fresh;
    optim::Arena arena(fresh.model());
    const auto checkpoint =
        store::CheckpointStore::load(runs::find_checkpoint(of.run_directory, name));
    runs::load_weights(checkpoint.file("model"), name, arena);
    return arena.params().clone();
  };
  EXPECT_TRUE(weights(run, "best").equal(weights(undisturbed, "last")));
}

// The end of a part validates too, and better than ever: nobody may take notice later.
TEST_F(TrainerFailuresTest, TheValidationAtTheEndOfAPartChangesNothingThatFollows) {
  const auto prepare = [](FailingTask& task) {
    task.nll_at = [](int64_t step) {
      const std::map<int64_t, double> nlls{{4, 3.0}, {8, 2.0}, {12, 1.9}, {16, 2.5}, {20, 2.4}};
      const auto found = nlls.find(step);
      return found == nlls.end() ? 1.0 : found->second;
    };
  };
  for (const int64_t patience : {0, 2}) {
    auto whole = setup("whole" + std::to_string(patience));
    auto parts = setup("parts" + std::to_string(patience));
    for (auto* run : {&whole, &parts}) {
      run->train.max_steps = 24;
      run->train.patience = patience;
      run->eval.every = 4;
      run->schedule = {.name = "plateau", .warmup_steps = 0, .decay_rate = 0.5};
    }
    train(whole, prepare);
    train_until(parts, prepare, {7, 9, 15, 24});
    const auto want = events(whole, "train"), got = events(parts, "train");
    // Without progress: 16, 20, and what stands at 24 is the best of all.
    ASSERT_EQ(want.size(), patience > 0 ? 20U : 24U);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      const double factor = i < 16 ? 1 : i < 20 ? 0.5 : 0.25;
      EXPECT_DOUBLE_EQ(want[i].lr.value(), kPeak * factor) << "step " << i + 1;
      EXPECT_EQ(got[i].lr, want[i].lr) << "step " << i + 1;
    }
    EXPECT_EQ(final_hash(parts), final_hash(whole));
  }
}

TEST_F(TrainerFailuresTest, AReportAfterAResumeHasTheScalesFromBeforeIt) {
  auto run = setup("run");
  run.train.max_steps = 8;
  run.train.loss_scale = {.name = "fairseq", .init = 256, .window = 1000};
  train(run,
        [](FailingTask& task) {
          task.largest_scale = [](int64_t) { return 64; };
          task.nans[7] = FailingTask::kAlways;
        },
        {4, 6});
  const auto report = read_report(run.run_directory / "forensics" / "step_00000007.json");
  EXPECT_EQ(report.record.loss_scales, (std::vector<double>{256, 128, 64, 64, 64, 64, 64}));
}

}  // namespace
}  // namespace stretto::train
