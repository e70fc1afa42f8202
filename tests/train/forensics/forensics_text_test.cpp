#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/train/failing_task.h"
#include "train/forensics/forensics_report.h"

namespace stretto::train {
namespace {

/// A gradient that overflowed at this scale, and what the scaler did.
struct Overflow {
  const char* scaler;
  double scale, next;
  kernels::Compute compute;
  const char* advised;                  ///< the last line holds it,
  const char* not_advised = "nothing";  ///< and not this
};

std::string last_line(const NonfiniteReport& report, const UpdateRecord& record,
                      const ReportAdvice& known = {}) {
  const std::string text = report_to_text(report, record, known);
  return text.substr(text.rfind('\n') + 1);
}

TEST(ForensicsText, TheAdviceOnAGradientDependsOnWhatTheLossScalerCanDo) {
  constexpr auto kFp16 = kernels::Compute::kFp16, kFp32 = kernels::Compute::kFp32;
  const Overflow rows[] = {
      {"fairseq", 128, 64, kFp16, "the loss scale is 128: the scaler lowers it"},
      {"backoff", 16, 8, kFp16, "the scaler lowers it"},
      {"static", 1e9, 1e9, kFp16,
       "lower train.loss_scale.init, 1e+09, or use train.loss_scale.name = \"fairseq\"",
       "the scaler lowers"},
      {"backoff", 8, 8, kFp16, "lower train.loss_scale.min, below which the scaler may not go",
       "the scaler lowers"},
      {"backoff", 1, 1, kFp16, "the loss scale is 1: try a lower optim.lr", "scaler"},
      {"fairseq", 1.220703125e-4, 1.220703125e-4, kFp16, "try a lower optim.lr", "scaler"},
      {"none", 1, 1, kFp16, "try a lower optim.lr", "train.loss_scale"},
      {"static", 1e38, 1e38, kFp32, "loss scale 1e+38: lower train.loss_scale.init, 1e+38"},
      {"none", 1, 1, kFp32, "try a lower optim.lr", "scale"},
      {"", 64, 0, kFp16, "a smaller train.loss_scale.init", "the scaler lowers"},  // an old report
  };
  for (const Overflow& row : rows) {
    SCOPED_TRACE(row.scaler + (" at " + std::to_string(row.scale)));
    const NonfiniteReport report{.loss_scale = row.scale,
                                 .compute = row.compute,
                                 .first = {TensorKind::kParameterGradient, "a.weight", "loss"}};
    const auto advice = last_line(report, {.step = 7, .scaler = {row.scaler, row.next}});
    EXPECT_NE(advice.find(row.advised), std::string::npos) << advice;
    EXPECT_EQ(advice.find(row.not_advised), std::string::npos) << advice;
  }
}

// What is in force already is no remedy, nor is half precision where there is none.
TEST(ForensicsText, TheAdviceDependsOnWhatTheRunHasInForce) {
  struct Row {
    kernels::Compute compute;
    AdviceContext run;
    std::string advised;
  };
  const std::string warmup = "a longer schedule.warmup_steps", pre = ", or model.norm = \"pre\"";
  const TaskWords words{.stabilising_setting = "model.norm = \"pre\""};
  std::vector<Row> rows{
      {kernels::Compute::kFp16,
       {},
       "  fp16 ends at 65504: try train.precision = \"mixed_bf16\", which has the "
       "range of fp32, or \"fp32\""}};
  for (const auto compute :
       {kernels::Compute::kBf16, kernels::Compute::kFp32, kernels::Compute::kTf32}) {
    rows.push_back({compute,
                    {.words = words},
                    "  try a lower optim.lr, optim.clip_norm = 1.0 or " + warmup + pre});
    rows.push_back(
        {compute, {.clip_norm = 1, .words = words}, "  try a lower optim.lr or " + warmup + pre});
    rows.push_back(
        {compute, {.clip_norm = 5}, "  try a lower optim.lr, optim.clip_norm = 1.0 or " + warmup});
    rows.push_back({compute, {.clip_norm = 0.5}, "  try a lower optim.lr or " + warmup});
  }
  for (const Row& row : rows) {
    const NonfiniteReport report{.compute = row.compute,
                                 .first = {TensorKind::kOutput, "a.up", ""}};
    EXPECT_EQ(last_line(report, {.step = 7}, {.run = row.run}), row.advised)
        << compute_name(row.compute);
  }
  const NonfiniteReport one{.first = {TensorKind::kOutput, "a.up", ""},
                            .micro_batches = {{.sample_ids = {1, 2, 3}, .finite = false}},
                            .micro_batch = 0,
                            .samples = {2}};
  const UpdateRecord record{.step = 7, .positions = {{.epoch = 0, .index = 0}}};
  EXPECT_NE(last_line(one, record).find("or optim.clip_norm = 1.0 makes"), std::string::npos);
  EXPECT_NE(last_line(one, record, {.run = {.clip_norm = 1}}).find("a lower optim.lr makes"),
            std::string::npos);
}

TEST(ForensicsText, CallsSamplesAndKeysAsTheTaskDoes) {
  const NonfiniteReport one{.first = {TensorKind::kOutput, "a.up", ""},
                            .micro_batches = {{.sample_ids = {1, 2, 3}, .finite = false}},
                            .micro_batch = 0,
                            .samples = {2}};
  const UpdateRecord record{.step = 7, .positions = {{.epoch = 0, .index = 0}}};
  const std::string plain = report_to_text(one, record);
  EXPECT_NE(plain.find("of its 3 samples 1 alone"), std::string::npos) << plain;
  EXPECT_NE(plain.find("look at these samples, which `stretto replay` prints; a lower"),
            std::string::npos)
      << plain;
  const TaskWords words{.sample = "phrase",
                        .samples = "phrases",
                        .odd_samples = "data.max_ratio leaves out the odd ones"};
  const std::string text = report_to_text(one, record, {.run = {.words = words}});
  EXPECT_NE(text.find("of its 3 phrases 1 alone"), std::string::npos) << text;
  EXPECT_NE(text.find("look at these phrases, which `stretto replay` prints (data.max_ratio leaves "
                      "out the odd ones); a lower"),
            std::string::npos)
      << text;
}

TEST(ForensicsText, WhatFp32DoesNotMendIsNoMatterOfPrecision) {
  const NonfiniteReport half{.loss_scale = 64,
                             .compute = kernels::Compute::kFp16,
                             .first = {TensorKind::kParameterGradient, "a.weight", ""}};
  const NonfiniteReport whole{.first = {TensorKind::kOutput, "a.up", ""}};
  const UpdateRecord record{.step = 7, .scaler = {"static", 64}};
  EXPECT_EQ(last_line(half, record, {.run = {.clip_norm = 1}, .in_fp32 = &whole}),
            "  in fp32 it is not finite either: try a lower optim.lr or a longer "
            "schedule.warmup_steps");
  EXPECT_NE(last_line(half, record).find("train.precision"), std::string::npos);
}

TEST(ForensicsText, SpoiltWeightsAreLeftForACheckpointInAFolderOfItsOwn) {
  const NonfiniteReport report{.first = {TensorKind::kOutput, "a.up", ""},
                               .weights = {{"a.up.weight", 3}}};
  const auto advice = [&](const AdviceContext& run) {
    return last_line(report, {.step = 7, .checkpoint = "step_00000004"}, {.run = run});
  };
  const std::string calmer =
      "  the weights are spoilt: try a lower optim.lr, optim.clip_norm = 1.0 "
      "or a longer schedule.warmup_steps; this run's folder keeps its "
      "values: give others to a new run (--run NEW";
  const std::filesystem::path there = "runs/a/checkpoints/step_00000004";
  EXPECT_EQ(advice({}), calmer + ")");
  EXPECT_EQ(advice({.checkpoint = there}),
            calmer + " train.init_from=" + there.string() +
                "); or resume this run with train.forensics.policy=rollback");
  EXPECT_NE(advice({.rolls_back = true, .checkpoint = there}).find("\"rollback\" goes back"),
            std::string::npos);
}

TEST(ForensicsText, AnOutputInForwardHasNothingToDoWithTheLossScale) {
  const NonfiniteReport report{.loss_scale = 1e9,
                               .compute = kernels::Compute::kFp16,
                               .first = {TensorKind::kOutput, "a.up", ""}};
  const auto advice = last_line(report, {.step = 7, .scaler = {"static", 1e9}});
  EXPECT_EQ(advice.find("train.loss_scale"), std::string::npos) << advice;
}

TEST(ForensicsText, ASumOverProcessesIsToldApartAndHasARemedyOfItsOwn) {
  const FirstNonfinite local{TensorKind::kSum, "a.weight", ""};
  const FirstNonfinite sent{TensorKind::kSum,
                            "a.weight over 2 processes, sent as fp16 (dist.compress)", ""};
  const FirstNonfinite whole{TensorKind::kSum, "a.weight over 2 processes", ""};
  EXPECT_FALSE(is_sum_over_processes(local));
  EXPECT_TRUE(is_sum_over_processes(sent) && is_sum_over_processes(whole));
  EXPECT_EQ(place_text(local), "the sum over micro-batches of the gradient of a.weight");
  EXPECT_EQ(place_text(whole), "the sum of the gradient of a.weight over 2 processes");

  const UpdateRecord record{.step = 7, .world_size = 2, .scaler = {"static", 1e6}};
  const auto advice = [&](const FirstNonfinite& first) {
    return last_line({.loss_scale = 1e6, .compute = kernels::Compute::kFp16, .first = first},
                     record);
  };
  EXPECT_TRUE(advice(sent).find("dist.compress = \"bf16\"") != std::string::npos &&
              advice(sent).find("loss scale 1e+06: lower train.loss_scale.init") !=
                  std::string::npos)
      << advice(sent);
  EXPECT_EQ(advice(sent).find("optim.lr"), std::string::npos) << advice(sent);
  EXPECT_NE(advice(whole).find("each process's gradients were finite, their sum left"),
            std::string::npos)
      << advice(whole);
  EXPECT_EQ(advice(whole).find("dist.compress"), std::string::npos) << advice(whole);
  EXPECT_NE(advice(local).find("each micro-batch's gradients were finite"), std::string::npos)
      << advice(local);
}

// Of several processes one alone proves nothing about the machine.
TEST(ForensicsText, AllFiniteOnOneOfSeveralProcessesLeavesTheSum) {
  const auto alone = last_line({}, {.step = 7});
  EXPECT_NE(alone.find("doubt the machine"), std::string::npos) << alone;
  const auto one_of_two = last_line({}, {.step = 7, .world_size = 2});
  EXPECT_NE(one_of_two.find("the sum over processes, which one process cannot show"),
            std::string::npos)
      << one_of_two;
}

TEST(ForensicsText, AStaticScaleThatIsTooLargeEndsTheRunWithTheNameOfItsOption) {
  const stretto::testing::TempDir folder;
  auto run = test::toy_setup(folder.path() / "run");
  run.train.loss_scale = {.name = "static", .init = 1e38};
  run.train.forensics = {.policy = "stop", .stop_after = 2};
  test::FailingTask task;
  task.largest_scale = [](int64_t) { return 1e37; };
  try {
    Trainer(task, run).run();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kNumeric);
    EXPECT_TRUE(error.advice().starts_with("lower train.loss_scale.init, 1e+38, or use "))
        << error.advice();
    EXPECT_NE(error.advice().find("; or try a lower optim.lr"), std::string::npos)
        << error.advice();
  }
  // No routine of this scaler, so the first overflow is looked at.
  std::vector<SavedReport> saved;
  for (const auto& file : std::filesystem::directory_iterator(run.run_directory / "forensics")) {
    if (file.path().extension() == ".json") saved.push_back(read_report(file.path()));
  }
  const auto events = test::events(run, "train");
  ASSERT_FALSE(saved.empty());
  const auto& last = *std::max_element(
      saved.begin(), saved.end(), [](auto& a, auto& b) { return a.record.step < b.record.step; });
  EXPECT_EQ(last.record.scaler, (ScalerRecord{"static", 1e38}));
  EXPECT_EQ(last.record.step, events.back().step - 1);  // of the two in a row
  // A loss that is not finite has nothing to do with its scale.
  run = test::toy_setup(folder.path() / "nan");
  run.train.loss_scale = {.name = "static", .init = 64};
  run.train.forensics = {.policy = "stop", .stop_after = 1};
  task.nan_at = 4;
  try {
    Trainer(task, run).run();
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.advice().find("train.loss_scale"), std::string::npos) << error.advice();
  }
}

}  // namespace
}  // namespace stretto::train
