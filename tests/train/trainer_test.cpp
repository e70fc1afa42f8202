#include "train/trainer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/failpoint.h"
#include "base/file.h"
#include "report/metrics_log.h"
#include "runs/average.h"
#include "tests/base/failure.h"
#include "tests/train/toy_task.h"
#include "tests/train/trainer_runs.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using test::events, test::final_hash, test::ToyTask, test::TrainerTest;

TEST_F(TrainerTest, ARunThatIsCutInPartsEndsWithTheSameWeightsAndMetrics) {
  auto whole = setup("whole");
  ToyTask undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);

  auto parts = setup("parts");
  for (const int64_t steps : {3, 4, 7, 12}) {
    ToyTask task;
    auto part = parts;
    part.train.max_steps = steps;
    part.eval.every = 100;
    ASSERT_EQ(Trainer(task, part).run(), ExitCode::kOk);
  }
  EXPECT_EQ(final_hash(parts), final_hash(whole));
  const auto expected = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].step, expected[i].step);
    EXPECT_EQ(got[i].loss, expected[i].loss) << "step " << expected[i].step;
    EXPECT_EQ(got[i].batch_hash, expected[i].batch_hash);
    EXPECT_EQ(got[i].grad_norm, expected[i].grad_norm);
  }
}

// A factor of 3 rounds, so that even the weights depend on the scale.
TEST_F(TrainerTest, ARunThatIsCutInPartsGoesOnWithTheLossScale) {
  for (const char* name : {"backoff", "fairseq", "logmax"}) {
    auto whole = setup(std::string("whole_") + name), parts = setup(std::string("parts_") + name);
    for (auto* run : {&whole, &parts}) {
      run->train.max_steps = 24;
      run->train.loss_scale = {
          .name = name, .init = 50, .min = 1, .max = 1e6, .factor = 3, .window = 3};
    }
    ToyTask undisturbed;
    undisturbed.nan_at = 10;
    ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
    for (const int64_t last : {4, 5, 11, 13, -1}) {  // 11: right after the overflow
      ToyTask task;
      task.nan_at = 10;
      task.signal_at = last;
      ASSERT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
    }
    const auto expected = events(whole, "train"), got = events(parts, "train");
    ASSERT_EQ(got.size(), expected.size());
    std::set<double> scales;
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].loss_scale, expected[i].loss_scale) << name << ", step " << i + 1;
      EXPECT_EQ(got[i].skipped, expected[i].skipped) << name << ", step " << i + 1;
      scales.insert(expected[i].loss_scale.value());
    }
    EXPECT_GE(scales.size(), 3U) << name << ": the scale hardly moved";
    EXPECT_EQ(final_hash(parts), final_hash(whole)) << name;
  }
}

TEST_F(TrainerTest, ARunThatDiedBeforeItsFirstCheckpointStartsAfresh) {
  auto run = setup("run");
  {
    report::MetricsLog log(run.run_directory / "metrics.jsonl", std::nullopt);
    log.write({.step = 1, .epoch = 1, .event = "train"});
  }
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(events(run, "train").size(), 12U);
}

TEST_F(TrainerTest, LossIsNormalisedByTheTokensOfTheWholeUpdate) {
  auto run = setup("run");
  run.train.update_freq = 8;
  run.train.max_steps = 1;
  ToyTask task, twin;
  const auto whole = [&] {
    double sum = 0;
    for (int64_t i = 0; i < 8; ++i) {
      sum += twin.loss(twin.prepare(twin.train_batches().load(0, i)), {})
                 .losses.front()
                 .item<double>();
    }
    return sum / 16;
  }();
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_NEAR(events(run, "train").front().loss.value(), whole, 1e-9);
}

TEST_F(TrainerTest, PatienceStopsAfterValidationsWithoutImprovement) {
  auto run = setup("run");
  run.train.max_steps = 1000;
  run.train.patience = 2;
  run.eval.every = 2;
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  // 3.0, 2.0, 2.5 (one bad), 1.0 (best, at step 8), 1.5, 1.6 -> stop at step 12.
  const auto end = events(run, "end").front();
  EXPECT_EQ(end.step, 12);
  EXPECT_NE(end.reason.value().find("patience"), std::string::npos);
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "").filename(), "step_00000008");
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "last").filename(), "step_00000012");
}

// The validation at the start gives the best number of all, and nothing goes by it: neither the
// rate (plateau) nor the end (patience) nor the best checkpoint.
TEST_F(TrainerTest, AValidationBeforeTheFirstUpdateChangesNothingElse) {
  auto plain = setup("plain"), started = setup("started");
  for (auto* run : {&plain, &started}) {
    run->train.max_steps = 1000;
    run->train.patience = 2;
    run->train.update_freq = 2;  // with a noise scale
    run->eval.every = 2;
    run->schedule = {.name = "plateau", .warmup_steps = 0, .decay_rate = 0.5, .patience = 0};
  }
  started.eval.at_start = true;
  ToyTask task, same;
  ASSERT_EQ(Trainer(task, plain).run(), ExitCode::kOk);
  same.nlls.insert(same.nlls.begin(), 0.5);
  ASSERT_EQ(Trainer(same, started).run(), ExitCode::kOk);

  const auto valid = events(started, "valid"), before = events(plain, "valid");
  ASSERT_EQ(valid.size(), before.size() + 1);
  EXPECT_EQ(valid[0].step, 0);
  EXPECT_EQ(valid[0].loss, 0.5);
  EXPECT_EQ(valid[1].step, 2);
  const auto expected = events(plain, "train"), got = events(started, "train");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].loss, expected[i].loss) << "step " << i + 1;
    EXPECT_EQ(got[i].lr, expected[i].lr) << "step " << i + 1;
    EXPECT_EQ(got[i].grad_norm, expected[i].grad_norm) << "step " << i + 1;
    EXPECT_EQ(got[i].noise_scale, expected[i].noise_scale) << "step " << i + 1;
    EXPECT_EQ(got[i].batch_hash, expected[i].batch_hash) << "step " << i + 1;
  }
  EXPECT_EQ(final_hash(started), final_hash(plain));
  EXPECT_EQ(runs::find_checkpoint(started.run_directory, "best").filename(),
            runs::find_checkpoint(plain.run_directory, "best").filename());
}

TEST_F(TrainerTest, OnlyANewRunIsValidatedBeforeItsFirstUpdate) {
  auto run = setup("run");
  run.eval.at_start = true;
  ToyTask first, second;
  first.signal_at = 5;
  ASSERT_EQ(Trainer(first, run).run(), ExitCode::kInterrupted);
  EXPECT_EQ(first.validations, 1U);
  ASSERT_EQ(Trainer(second, run).run(), ExitCode::kOk);
  EXPECT_EQ(second.validations, 1U) << "that of the end";
  const auto valid = events(run, "valid");
  ASSERT_EQ(valid.size(), 2U);
  EXPECT_EQ(valid[0].step, 0);
  EXPECT_EQ(valid[1].step, 12);
}

TEST_F(TrainerTest, ARunThatDiedBeforeItsFirstCheckpointIsValidatedAtItsStartAgain) {
  auto run = setup("run");
  run.eval.at_start = true;
  {
    report::MetricsLog log(run.run_directory / "metrics.jsonl", std::nullopt);
    log.write({.step = 0, .epoch = 1, .event = "valid"});
    log.write({.step = 1, .epoch = 1, .event = "train"});
  }
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(events(run, "valid").size(), 2U);
}

TEST_F(TrainerTest, ANonFiniteLossSkipsTheUpdateAndSaysSo) {
  auto run = setup("run");
  ToyTask task, healthy;
  task.nan_at = 4;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = events(run, "train");
  ASSERT_EQ(train.size(), 13U) << "twelve updates were made";
  for (const auto& event : train) {
    EXPECT_EQ(event.skipped.value_or(false), event.step == 5) << event.step;
  }
  for (const auto& parameter : task.model().parameters()) {
    EXPECT_TRUE(torch::isfinite(parameter).all().item<bool>());
  }
}

TEST_F(TrainerTest, AReportOfTheNonFiniteUpdateLiesInTheRun) {
  auto run = setup("run");
  ToyTask task;
  task.nan_at = 4;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_TRUE(fs::exists(run.run_directory / "forensics" / "step_00000005.json"));
  EXPECT_TRUE(fs::exists(run.run_directory / "forensics" / "step_00000005.safetensors"));
}

TEST_F(TrainerTest, AValidationThatIsNoNumberIsNeverTheBestAndCanBeResumedFrom) {
  auto run = setup("run");
  run.eval.every = 2;
  run.train.max_steps = 6;
  ToyTask task;
  task.nlls = {std::nan(""), 3.0, std::nan("")};
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "best").filename(), "step_00000004");
  ToyTask again;
  again.nlls = {2.0};
  run.train.max_steps = 8;
  ASSERT_EQ(Trainer(again, run).run(), ExitCode::kOk);
  EXPECT_EQ(runs::find_checkpoint(run.run_directory, "best").filename(), "step_00000008");
}

TEST_F(TrainerTest, AnOverflowAtTheSmallestScaleIsRecordedAndLookedAtBeforeTheRunEnds) {
  auto run = setup("run");
  run.train.loss_scale = {.name = "backoff", .init = 1, .min = 1, .max = 2};
  ToyTask task;
  task.nan_at = 4;
  const Error error = testing::failure(ExitCode::kNumeric, [&] { Trainer(task, run).run(); });
  EXPECT_NE(error.message().find("step_00000005.json"), std::string::npos) << error.what();
  EXPECT_EQ(events(run, "train").size(), 5U);
}

TEST_F(TrainerTest, NoCheckpointIsWrittenBetweenUpdatesThatFail) {
  auto run = setup("run");
  run.train.save_every = 1;
  run.train.keep_last = 100;
  run.train.max_steps = 8;
  ToyTask task;
  task.nan_at = 4;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  EXPECT_TRUE(fs::exists(run.run_directory / "checkpoints" / "step_00000004"));
  EXPECT_FALSE(fs::exists(run.run_directory / "checkpoints" / "step_00000005"));
  EXPECT_TRUE(fs::exists(run.run_directory / "checkpoints" / "step_00000006"));
}

TEST_F(TrainerTest, StopEndsTheRunWithTheNumericCode) {
  auto run = setup("run");
  run.train.forensics.policy = "stop";
  run.train.forensics.stop_after = 1;
  ToyTask task;
  task.nan_at = 4;
  const Error error = testing::failure(ExitCode::kNumeric, [&] { Trainer(task, run).run(); });
  EXPECT_NE(std::string(error.what()).find("step 5"), std::string::npos) << error.what();
}

TEST_F(TrainerTest, ARollbackGoesOnFromTheCheckpointWithASmallerRate) {
  auto run = setup("run");
  run.train.forensics.policy = "rollback";
  run.train.forensics.stop_after = 1;
  ToyTask task;
  task.nan_at = 6;
  task.nan_times = 2;  // once in training, once when it is examined
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto train = events(run, "train");
  ASSERT_EQ(train.size(), 12U);  // those after the checkpoint of step 4 were written anew
  for (size_t i = 0; i < train.size(); ++i) {
    EXPECT_EQ(train[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_FALSE(train[i].skipped.value_or(false));
  }
  EXPECT_DOUBLE_EQ(train[3].lr.value(), 0.05);   // before the checkpoint
  EXPECT_DOUBLE_EQ(train[4].lr.value(), 0.025);  // after it
  EXPECT_DOUBLE_EQ(train[11].lr.value(), 0.025);
}

TEST_F(TrainerTest, ASpikeOfTheGradientIsNotedAndLeftOutOnRequest) {
  for (const char* policy : {"report", "skip"}) {
    auto run = setup(policy);
    run.train.max_steps = 40;
    run.train.forensics.spike_policy = policy;
    ToyTask task;
    task.spike_at = 30;
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    const auto train = events(run, "train");
    ASSERT_EQ(train.size(), std::string(policy) == "skip" ? 41U : 40U);
    EXPECT_TRUE(train[30].note.has_value());
    EXPECT_EQ(train[30].skipped.value_or(false), std::string(policy) == "skip");
  }
}

// Without the first updates a spike has no verdict: whoever forgets them trains on it.
TEST_F(TrainerTest, ARunThatIsCutInPartsStillKnowsWhatASpikeIs) {
  auto whole = setup("whole"), parts = setup("parts");
  for (auto* run : {&whole, &parts}) {
    run->train.max_steps = 32;
    run->train.forensics.spike_policy = "skip";
  }
  ToyTask undisturbed;
  undisturbed.spike_at = 30;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t last : {12, 26, -1}) {
    ToyTask task;
    task.spike_at = 30;
    task.signal_at = last;
    ASSERT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  const auto expected = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].note, expected[i].note) << "step " << i + 1;
    EXPECT_EQ(got[i].skipped, expected[i].skipped) << "step " << i + 1;
  }
  EXPECT_TRUE(expected[30].skipped.value_or(false));
  EXPECT_EQ(final_hash(parts), final_hash(whole));
}

// Step 31 is none of those that are recorded anyway.
TEST_F(TrainerTest, ARunHasSomeTwoHundredRecordsBesideWhatHappened) {
  auto whole = setup("whole"), parts = setup("parts");
  for (auto* run : {&whole, &parts}) {
    run->train.max_steps = 500;
    run->train.save_every = 100;
    run->report.every = 0;
  }
  ToyTask undisturbed;
  undisturbed.spike_at = 30;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t last : {1, 33, -1}) {
    ToyTask task;
    task.spike_at = 30;
    task.signal_at = last;
    ASSERT_EQ(Trainer(task, parts).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
  }
  std::vector<int64_t> expected{1}, scheduled, between, resumed;
  for (int64_t step = 2; step <= 500; step += 2) expected.push_back(step);
  for (const auto& event : events(whole, "train")) {
    (event.unscheduled ? between : scheduled).push_back(event.step);
    EXPECT_EQ(event.note.has_value(), event.unscheduled.has_value()) << event.step;
  }
  for (const auto& event : events(parts, "train")) {
    if (!event.unscheduled) resumed.push_back(event.step);
  }
  EXPECT_EQ(scheduled, expected);
  EXPECT_EQ(between, std::vector<int64_t>{31});
  EXPECT_EQ(resumed, expected);
}

TEST_F(TrainerTest, NoMemoryForAMicroBatchSplitsItAndMakesTheSameUpdate) {
  auto whole = setup("whole"), split = setup("split");
  for (auto* run : {&whole, &split}) run->train.update_freq = 2;
  ToyTask undisturbed, short_of_memory;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  set_failpoints("micro_batch:throw:4");  // the second of the second update
  ASSERT_EQ(Trainer(short_of_memory, split).run(), ExitCode::kOk);
  set_failpoints("");
  const auto want = events(whole, "train"), got = events(split, "train");
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(*got[i].loss, *want[i].loss, 1e-6 * *want[i].loss) << i;
    EXPECT_NEAR(*got[i].grad_norm, *want[i].grad_norm, 1e-5 * *want[i].grad_norm) << i;
    EXPECT_EQ(got[i].batch_hash, want[i].batch_hash);
    EXPECT_EQ(got[i].number("target_tokens"), want[i].number("target_tokens"));
    EXPECT_EQ(got[i].note.has_value(), i == 1);
  }
}

TEST_F(TrainerTest, NoMemoryForASingleSampleEndsTheRun) {
  auto run = setup("run");
  ToyTask task;
  set_failpoints("micro_batch:throw:3+");
  const Error error = testing::failure(ExitCode::kOutOfMemory, [&] { Trainer(task, run).run(); });
  EXPECT_NE(error.advice().find("micro-batches smaller"), std::string::npos);
  set_failpoints("");
}

TEST_F(TrainerTest, TheNoiseScaleIsMeasuredWhenAnUpdateHasSeveralMicroBatches) {
  auto one = setup("one"), four = setup("four");
  one.train.max_steps = four.train.max_steps = 40;
  four.train.update_freq = 4;
  ToyTask first, second;
  ASSERT_EQ(Trainer(first, one).run(), ExitCode::kOk);
  ASSERT_EQ(Trainer(second, four).run(), ExitCode::kOk);
  EXPECT_FALSE(events(one, "train").back().noise_scale.has_value());
  EXPECT_TRUE(events(four, "train").back().noise_scale.has_value());
}

TEST_F(TrainerTest, ARunThatIsCutInPartsGoesOnWithTheNoiseScale) {
  auto whole = setup("whole"), parts = setup("parts");
  for (auto* run : {&whole, &parts}) {
    run->train.max_steps = 40;
    run->train.update_freq = 4;
  }
  ToyTask undisturbed;
  ASSERT_EQ(Trainer(undisturbed, whole).run(), ExitCode::kOk);
  for (const int64_t steps : {7, 25, 40}) {
    ToyTask task;
    parts.train.max_steps = steps;
    ASSERT_EQ(Trainer(task, parts).run(), ExitCode::kOk);
  }
  const auto expected = events(whole, "train"), got = events(parts, "train");
  ASSERT_EQ(got.size(), expected.size());
  size_t known = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].noise_scale, expected[i].noise_scale) << "step " << i + 1;
    known += expected[i].noise_scale.has_value() ? 1 : 0;
  }
  EXPECT_GT(known, 20U);
}

TEST_F(TrainerTest, AFinishedRunThatIsStartedAgainValidatesNoMore) {
  for (const int64_t save_every : {4, 5}) {  // the last save is due at the end, or is its own
    auto run = setup("save_every_" + std::to_string(save_every));
    run.train.save_every = save_every;
    run.report.html = true;
    for (int time = 0; time < 3; ++time) {
      ToyTask task;
      ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
      EXPECT_EQ(task.validations, time == 0 ? 1U : 0U);
      EXPECT_EQ(events(run, "valid").size(), 1U);
      EXPECT_EQ(events(run, "end").size(), 1U);
    }
  }
}

// It was saved in time, and killed before its validation of that step could be saved.
TEST_F(TrainerTest, AValidationThatNoCheckpointKnowsIsMadeAgainAndStandsThereOnce) {
  auto run = setup("run");
  run.eval.every = 4;
  ToyTask stopped, again;
  stopped.signal_at = 4;
  ASSERT_EQ(Trainer(stopped, run).run(), ExitCode::kInterrupted);
  {
    report::MetricsLog log(run.run_directory / "metrics.jsonl", std::nullopt);
    log.write({.step = 4, .epoch = 1, .event = "valid"});
  }
  ASSERT_EQ(Trainer(again, run).run(), ExitCode::kOk);
  const auto valid = events(run, "valid");
  ASSERT_EQ(valid.size(), 3U);
  EXPECT_EQ(valid[0].step, 4);
  EXPECT_EQ(valid[1].step, 8);
}

TEST_F(TrainerTest, DamageInsideTheMetricsIsNamedAndTrainingGoesOn) {
  auto run = setup("run");
  const fs::path metrics = run.run_directory / "metrics.jsonl";
  const auto train_to = [&](int64_t steps) {
    run.train.max_steps = steps;
    ToyTask task;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    return ::testing::internal::GetCapturedStderr();
  };
  const auto has = [](const std::string& log, const char* words) {
    return log.find(words) != std::string::npos;
  };
  EXPECT_FALSE(has(train_to(3), "metrics"));
  EXPECT_FALSE(has(train_to(6), "metrics")) << "nothing is damaged";
  std::string text = read_file(metrics);
  const size_t digit = text.find('.', text.find("\"loss\":")) + 1;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write_file_atomic(metrics, text);
  EXPECT_TRUE(has(train_to(7), "metrics.jsonl is not what it was"));
  EXPECT_FALSE(has(train_to(8), "metrics")) << "it is said once";
  text = read_file(metrics);
  text[text.find("\"event\"", text.find('\n')) - 1] = '\n';
  write_file_atomic(metrics, text);
  const std::string log = train_to(9);
  EXPECT_TRUE(has(log, "metrics.jsonl:2: left out")) << log;
  EXPECT_TRUE(has(log, "metrics.jsonl:3: left out")) << log;
  EXPECT_TRUE(has(log, "bad-metrics.jsonl")) << log;
  EXPECT_EQ(read_file(run.run_directory / "bad-metrics.jsonl"), text);
  EXPECT_EQ(events(run, "train").size(), 8U);
}

TEST_F(TrainerTest, TheSamplesOfTheReportOutliveAProcess) {
  auto run = setup("run");
  run.report.html = true;
  run.eval.every = 4;
  const auto page_after = [&](int64_t steps, bool shows) {
    run.train.max_steps = steps;
    ToyTask task;
    if (shows) task.sample = "ein Haus";
    EXPECT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    return read_file(run.run_directory / "report.html");
  };
  EXPECT_NE(page_after(5, true).find("ein Haus"), std::string::npos);
  const std::string later = page_after(6, false);
  EXPECT_NE(later.find("ein Haus"), std::string::npos) << "there was no other sample";
  EXPECT_NE(later.find("<h2>Samples at step 5"), std::string::npos);
  write_file_atomic(run.run_directory / "report.json", "{");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(page_after(7, false).find("ein Haus"), std::string::npos);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the report goes on without the samples so far"), std::string::npos) << log;
}

TEST_F(TrainerTest, TheWordsOfAValidationSayWhatIsSmoothed) {
  for (const char* smoothing : {"", "label smoothing 0.1"}) {
    auto run = setup(std::string("run") + smoothing);
    const bool smoothed = *smoothing != '\0';
    auto& loss = run.description.display.numbers.front();
    loss.remark = smoothed ? std::string("with ") + smoothing : "";
    loss.progress = smoothed ? "smoothed loss" : "loss";
    ToyTask task;
    ::testing::internal::CaptureStderr();
    ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
    const std::string log = ::testing::internal::GetCapturedStderr();
    const std::string with = smoothed ? " (with label smoothing 0.1)" : "";
    EXPECT_NE(log.find("valid loss 3.0000" + with + ", nll 3.0000, ppl 20.09 (exp of nll)"),
              std::string::npos)
        << log;
    EXPECT_EQ(log.find("smoothed loss") != std::string::npos, smoothed) << log;
  }
}

TEST_F(TrainerTest, TheMeanOfTheLastCheckpointsIsWritten) {
  auto run = setup("run");
  run.train.average_last = 2;
  run.train.keep_last = 2;
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  const auto load = [&](const std::string& name) {
    ToyTask fresh;
    optim::Arena arena(fresh.model());
    const auto checkpoint =
        store::CheckpointStore::load(runs::find_checkpoint(run.run_directory, name));
    runs::load_weights(checkpoint.file("model"), name, arena);
    return arena.params().clone();
  };
  const auto mean = (load("8") + load("12")) / 2;
  EXPECT_TRUE(torch::allclose(load("averaged"), mean, 1e-6, 1e-7));
}

TEST_F(TrainerTest, AnotherArchitectureIsRefusedWithTheTensorsNamed) {
  auto run = setup("run");
  ToyTask task;
  ASSERT_EQ(Trainer(task, run).run(), ExitCode::kOk);
  torch::nn::Linear other(5, 3);
  optim::Arena arena(*other);
  const auto checkpoint =
      store::CheckpointStore::load(runs::find_checkpoint(run.run_directory, "last"));
  const Error error = testing::failure(
      ExitCode::kBadData, [&] { runs::load_weights(checkpoint.file("model"), "here", arena); });
  EXPECT_NE(std::string(error.what()).find("`weight` is [3, 4], the model wants [3, 5]"),
            std::string::npos)
      << error.what();
}

TEST(Retention, KeepsTheNewestTheBestAndTheMultiples) {
  runs::TrainState state;
  state.quality = {{100, -3.0}, {200, -1.0}, {300, -2.0}, {400, -1.5}, {500, -1.0}};
  const std::vector<int64_t> steps{100, 200, 300, 400, 500};
  const auto keep = [&](runs::KeepOptions options) {
    return runs::Checkpointer::steps_to_keep(steps, state, options);
  };
  using Steps = std::vector<int64_t>;
  EXPECT_EQ(keep({.keep_last = 1, .keep_best = 1}), (Steps{200, 500}));
  EXPECT_EQ(keep({.keep_last = 2, .keep_best = 0}), (Steps{400, 500}));
  EXPECT_EQ(keep({.keep_last = 1, .keep_best = 2}), (Steps{200, 500}));
  EXPECT_EQ(keep({.keep_last = 1, .keep_best = 0, .keep_every = 300}), (Steps{300, 500}));
  EXPECT_EQ(keep({.keep_last = 1, .keep_best = 0, .average_last = 3}), (Steps{300, 400, 500}));
  state.best_from = 201;  // more was pruned after step 200
  EXPECT_EQ(keep({.keep_last = 1, .keep_best = 2}), (Steps{400, 500}));
}

TEST(Retention, KeepsWhatARollbackNeeds) {
  runs::TrainState state;
  const std::vector<int64_t> steps{100, 200, 300, 400};
  using Steps = std::vector<int64_t>;
  struct Row {
    int64_t good_step;
    Steps kept;
  };
  for (const char* policy : {"skip", "rollback"}) {
    for (const Row& row : {Row{0, {400}}, Row{300, {300, 400}}, Row{250, {200, 400}},
                           Row{100, {100, 400}}, Row{400, {400}}}) {
      state.good_step = row.good_step;
      TrainOptions options{.keep_last = 1, .keep_best = 0};
      options.forensics.policy = policy;
      EXPECT_EQ(runs::Checkpointer::steps_to_keep(steps, state, options.checkpoints_kept()),
                std::string(policy) == "rollback" ? row.kept : Steps{400})
          << policy << ", " << row.good_step;
    }
  }
}

}  // namespace
}  // namespace stretto::train
