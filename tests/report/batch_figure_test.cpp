#include "report/batch_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/comparison_page.h"
#include "tests/report/markup.h"

namespace stretto::report {
namespace {

using testing::markup_error;

/// A run whose validations have these shares of right answers, one every ten updates.
ComparedRun run_of(double batch, const std::string& warmup, int seed,
                   const std::vector<double>& shares) {
  ComparedRun run{.name = warmup + std::to_string(batch) + "-" + std::to_string(seed),
                  .folder = "runs/x",
                  .task = "labels",
                  .status = "finished"};
  run.display.numbers = {NumberStyle{.name = "accuracy",
                                     .label = "Accuracy",
                                     .chart = "Accuracy",
                                     .column = "Accuracy",
                                     .higher_is_better = true,
                                     .error = "Top-1 error"}};
  run.display.best_by = "accuracy";
  run.keys = {{"run.seed", std::to_string(seed)},
              {"train.update_freq", std::to_string(static_cast<int>(batch))},
              {"schedule.warmup_steps", warmup == "no warm-up" ? "0" : "10"}};
  run.batch = {.size = batch, .unit = "samples", .warmup = warmup, .keys = {"train.update_freq"}};
  int64_t step = 0;
  for (const double share : shares) {
    step += 10;
    MetricsEvent event{.step = step, .epoch = 1, .event = "valid"};
    event.loss = 1;
    event.scores = {{"accuracy", share}};
    run.events.push_back(event);
  }
  return run;
}

std::optional<BatchFigure> figure_of(const Comparison& comparison) {
  return batch_figure(comparison, curves_of(comparison.runs));
}

TEST(BatchFigure, HasALineForEachWarmUpAndTheScatterOverSeeds) {
  const Comparison comparison{
      {run_of(64, "gradual warm-up", 1, {0.5}), run_of(1, "gradual warm-up", 1, {0.9}),
       run_of(1, "gradual warm-up", 2, {0.8}), run_of(64, "no warm-up", 1, {0.1})}};
  const auto figure = figure_of(comparison);
  ASSERT_TRUE(figure.has_value());
  EXPECT_EQ(figure->title, "Top-1 error (%)");
  EXPECT_EQ(figure->unit, "samples");
  EXPECT_TRUE(figure->others.empty());
  ASSERT_EQ(figure->lines.size(), 2U);
  const auto& gradual = figure->lines[0];
  EXPECT_EQ(gradual.name, "gradual warm-up");
  ASSERT_EQ(gradual.points.size(), 2U);
  EXPECT_EQ(gradual.points[0].batch, 1);
  EXPECT_NEAR(gradual.points[0].mean, 15, 1e-9);
  EXPECT_NEAR(gradual.points[0].deviation, std::sqrt(50.0), 1e-9) << "5 to each side, n - 1 = 1";
  EXPECT_EQ(gradual.points[0].runs, (std::vector<size_t>{1, 2}));
  EXPECT_NEAR(gradual.points[1].mean, 50, 1e-9);
  EXPECT_EQ(gradual.points[1].deviation, 0) << "one run";
  EXPECT_EQ(figure->lines[1].name, "no warm-up");
}

TEST(BatchFigure, TakesTheMedianOfTheLastFiveValidations) {
  Comparison comparison{{run_of(1, "no warm-up", 1, {0.99, 0.5, 0.1, 0.6, 0.2, 0.4}),
                         run_of(4, "no warm-up", 1, {0.7, 0.8})}};
  comparison.runs[0].display.numbers[0].error.clear();
  const auto figure = figure_of(comparison);
  ASSERT_TRUE(figure.has_value());
  EXPECT_EQ(figure->title, "Accuracy");
  EXPECT_NEAR(figure->lines[0].points[0].mean, 0.4, 1e-12);
  EXPECT_NEAR(figure->lines[0].points[1].mean, 0.75, 1e-12) << "fewer: of what there is";
}

TEST(BatchFigure, KeysOfTheModelAndOfLearningSplitLinesAndOthersAreNamed) {
  Comparison comparison{{run_of(1, "gradual warm-up", 1, {0.9}),
                         run_of(4, "gradual warm-up", 1, {0.8}),
                         run_of(4, "gradual warm-up", 1, {0.85})}};
  for (auto& run : comparison.runs) {
    run.keys.push_back({"optim.name", "\"sgd\""});
    run.keys.push_back({"optim.lr", std::to_string(run.batch.size)});
    run.keys.push_back({"train.max_steps", std::to_string(run.batch.size)});
  }
  comparison.runs[2].keys[3].second = "\"lars\"";
  const auto figure = figure_of(comparison);
  ASSERT_TRUE(figure.has_value());
  ASSERT_EQ(figure->lines.size(), 2U);
  EXPECT_EQ(figure->lines[0].name, "gradual warm-up, optim.name = \"lars\"");
  EXPECT_EQ(figure->lines[1].name, "gradual warm-up, optim.name = \"sgd\"");
  EXPECT_EQ(figure->others, (std::vector<std::string>{"optim.lr", "train.max_steps"}));
}

TEST(BatchFigure, IsThereOnlyWhereBatchesCanBeCompared) {
  const auto one = run_of(1, "no warm-up", 1, {0.9});
  EXPECT_FALSE(figure_of({{one, run_of(1, "no warm-up", 2, {0.8})}}).has_value());
  EXPECT_FALSE(figure_of({{one, run_of(4, "gradual warm-up", 1, {0.8})}}).has_value())
      << "each line has one batch";
  EXPECT_FALSE(figure_of({{one, run_of(4, "no warm-up", 1, {})}}).has_value());
  auto other = run_of(4, "no warm-up", 1, {0.8});
  EXPECT_TRUE(figure_of({{one, other}}).has_value());
  other.task = "another";
  EXPECT_FALSE(figure_of({{one, other}}).has_value());
  EXPECT_FALSE(figure_of({}).has_value());
}

TEST(BatchFigure, IsAPartOfThePageAndOfItsNumbers) {
  Comparison comparison;
  for (const char* warmup : {"no warm-up", "constant warm-up", "gradual <warm-up>"}) {
    for (const double batch : {1.0, 4.0, 16.0, 64.0}) {
      for (int seed = 1; seed <= 3; ++seed) {
        comparison.runs.push_back(run_of(batch, warmup, seed, {0.9 - batch / 100 + seed / 1e3}));
      }
    }
  }
  ASSERT_EQ(comparison.runs.size(), 36U);
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  for (const char* words : {"<title>36 runs", "Against the batch", "samples of an update",
                            "gradual &lt;warm-up&gt;", "± 0.10", "3 runs"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(page.find("class=\"views\""), std::string::npos) << "curves of 36 runs";
  const auto batches = nlohmann::json::parse(comparison_json(comparison)).at("batches");
  EXPECT_EQ(batches.at("title"), "Top-1 error (%)");
  ASSERT_EQ(batches.at("lines").size(), 3U);
  EXPECT_EQ(batches.at("lines").at(0).at("points").size(), 4U);
  comparison.runs.resize(1);
  EXPECT_TRUE(nlohmann::json::parse(comparison_json(comparison)).at("batches").is_null());
}

TEST(BatchFigure, SurvivesValuesThatAreEqualOrTooLarge) {
  Comparison comparison{{run_of(1, "no warm-up", 1, {0.5}), run_of(4, "no warm-up", 1, {0.5})}};
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  comparison.runs.push_back(run_of(4, "no warm-up", 2, {1e300}));
  for (const char* words : {"nan", "inf\""}) {
    EXPECT_EQ(render_comparison(comparison).find(words), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace stretto::report
