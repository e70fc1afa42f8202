#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "config/schema.h"

namespace stretto::optim {
namespace {

struct Rate {
  int64_t step;
  double lr;
};

/// @param width  of the model, which noam alone reads
void expect_table(const ScheduleOptions& schedule, double peak, int64_t total,
                  const std::vector<Rate>& table, int64_t width = 4) {
  for (const auto& row : table) {
    const ScheduleAt at{.step = row.step, .total_steps = total, .width = width};
    EXPECT_NEAR(learning_rate(schedule, peak, at), row.lr, 1e-12)
        << schedule.name << " at step " << row.step;
  }
}

TEST(Schedule, InverseSquareRootRisesFromTheInitialRateAndThenFallsWithTheRootOfTheStep) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 4000, .warmup_init_lr = 1e-7}, 5e-4, 0,
               {{0, 1e-7},
                {1, 1e-7 + (5e-4 - 1e-7) / 4000},
                {2000, 1e-7 + (5e-4 - 1e-7) / 2},
                {4000, 5e-4},
                {16000, 2.5e-4},
                {64000, 1.25e-4}});
}

TEST(Schedule, InverseSquareRootWithoutWarmUpStartsAtThePeak) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 0}, 1.0, 0,
               {{0, 1.0}, {1, 1.0}, {4, 0.5}, {100, 0.1}});
}

TEST(Schedule, LinearEndsAtItsFloorAndStaysThere) {
  expect_table({.name = "linear", .warmup_steps = 10, .warmup_init_lr = 0, .min_lr = 0.1}, 1.1, 110,
               {{0, 0.0}, {5, 0.55}, {10, 1.1}, {60, 0.6}, {110, 0.1}, {500, 0.1}});
}

TEST(Schedule, CosineIsHalfWayInTheMiddle) {
  expect_table({.name = "cosine", .warmup_steps = 0, .min_lr = 0}, 2.0, 100,
               {{0, 2.0}, {25, 1 + std::sqrt(0.5)}, {50, 1.0}, {100, 0.0}, {200, 0.0}});
}

TEST(Schedule, PolynomialFollowsItsPower) {
  expect_table({.name = "polynomial", .warmup_steps = 0, .min_lr = 0, .power = 2.0}, 1.0, 10,
               {{0, 1.0}, {5, 0.25}, {9, 0.01}, {10, 0.0}});
}

TEST(Schedule, ConstantStaysAtThePeakAfterWarmUp) {
  expect_table({.name = "constant", .warmup_steps = 4, .warmup_init_lr = 0}, 0.8, 0,
               {{0, 0.0}, {1, 0.2}, {3, 0.6}, {4, 0.8}, {100000, 0.8}});
}

TEST(Schedule, AFloorHoldsForInverseSquareRootToo) {
  expect_table({.name = "inverse_sqrt", .warmup_steps = 1, .warmup_init_lr = 0, .min_lr = 0.3}, 1.0,
               0, {{1, 1.0}, {4, 0.5}, {100, 0.3}});
}

// Number of updates, share, and what math.ceil(updates * share) gives in Python: the formula of
// TrainingArguments.get_warmup_steps in Hugging Face's transformers.
TEST(Schedule, AShareOfAllUpdatesIsAWarmUpAsHuggingFaceCounts) {
  struct Share {
    int64_t total;
    double ratio;
    int64_t warmup;
  };
  for (const Share& row : {Share{36, 0.1, 4}, Share{100, 0.07, 8}, Share{1000, 0.06, 60},
                           Share{64, 0.25, 16}, Share{1, 0.5, 1}, Share{9000, 0.1, 900}}) {
    const ScheduleOptions schedule{.warmup_steps = 0, .warmup_ratio = row.ratio};
    EXPECT_EQ(schedule.warmup_updates(row.total), row.warmup) << row.ratio << " of " << row.total;
  }
  EXPECT_EQ(ScheduleOptions{.warmup_steps = 7}.warmup_updates(1000), 7);
}

TEST(Schedule, SaysWhereItsDecayBeginsAndHowLongItIs) {
  ScheduleOptions schedule{.name = "linear", .warmup_steps = 10};
  schedule.hold_steps = 5;  // of tri_stage alone
  EXPECT_EQ(schedule.decay_begin(100), 10);
  EXPECT_EQ(schedule.held_updates(), 0);
  schedule.begin_steps = 20;
  EXPECT_EQ(schedule.decay_begin(100), 20);
  schedule.name = "tri_stage";
  EXPECT_EQ(schedule.decay_begin(100), 25);
  EXPECT_STREQ(schedule.warmup_key(), "schedule.warmup_steps");
  schedule.warmup_ratio = 0.5;
  EXPECT_EQ(schedule.decay_begin(100), 55);
  EXPECT_STREQ(schedule.warmup_key(), "schedule.warmup_ratio");
  EXPECT_EQ(schedule.length(300), 300);
  schedule.total_steps = 200;
  EXPECT_EQ(schedule.length(300), 200);
}

TEST(Schedule, AWarmUpThatIsAShareStandsBeforeTheCurve) {
  expect_table({.name = "linear", .warmup_steps = 0, .warmup_ratio = 0.1, .warmup_init_lr = 0}, 1.0,
               36, {{0, 0.0}, {1, 0.25}, {3, 0.75}, {4, 1.0}, {12, 0.75}, {20, 0.5}, {36, 0.0}});
  // The peak of the curve is where the warm-up ends.
  expect_table(
      {.name = "inverse_sqrt", .warmup_steps = 0, .warmup_ratio = 0.25, .warmup_init_lr = 0}, 1.0,
      64, {{0, 0.0}, {8, 0.5}, {16, 1.0}, {64, 0.5}, {256, 0.25}});
  expect_table({.name = "tri_stage",
                .warmup_steps = 0,
                .warmup_ratio = 0.1,
                .warmup_init_lr = 0,
                .hold_steps = 10,
                .final_scale = 0.01},
               1.0, 100, {{5, 0.5}, {10, 1.0}, {20, 1.0}, {60, 0.1}, {100, 0.01}});
}

TEST(Schedule, FixedIsAnotherNameOfConstant) {
  expect_table({.name = "fixed", .warmup_steps = 2, .warmup_init_lr = 0}, 0.5, 0,
               {{0, 0.0}, {1, 0.25}, {2, 0.5}, {1000, 0.5}});
}

TEST(Schedule, ConstantWarmUpJumpsToThePeak) {
  expect_table({.name = "constant", .warmup_steps = 5, .warmup_init_lr = 0.1, .warmup = "constant"},
               0.8, 0, {{0, 0.1}, {4, 0.1}, {5, 0.8}, {6, 0.8}});
}

TEST(Schedule, WarmUpStandsBeforeEveryShapeButNoam) {
  for (const char* name : {"constant", "piecewise", "step", "exponential", "polynomial", "linear",
                           "cosine", "cosine_restarts", "inverse_sqrt", "tri_stage", "plateau"}) {
    expect_table({.name = name, .warmup_steps = 10, .warmup_init_lr = 0.1}, 1.1, 100,
                 {{0, 0.1}, {3, 0.4}, {9, 1.0}, {10, 1.1}});
  }
}

TEST(Schedule, AConstantWarmUpStandsBeforeEveryShape) {
  struct Shape {
    const char* name;
    std::vector<Rate> after;  // of the warm-up, which ends at update 16
  };
  const std::vector<Shape> shapes{
      {"constant", {{16, 1.0}, {99, 1.0}}},
      {"fixed", {{16, 1.0}, {99, 1.0}}},
      {"piecewise", {{16, 1.0}, {36, 0.3}}},
      {"step", {{16, 1.0}, {35, 1.0}, {36, 0.25}}},
      {"exponential", {{16, 1.0}, {26, 0.5}, {36, 0.25}}},
      {"polynomial", {{16, 1.0}, {58, 0.25}, {100, 0.0}}},
      {"linear", {{16, 1.0}, {58, 0.5}, {100, 0.0}}},
      {"cosine", {{16, 1.0}, {58, 0.5}, {100, 0.0}}},
      {"cosine_restarts", {{16, 1.0}, {26, 0.5}, {36, 0.1}}},
      {"inverse_sqrt", {{16, 1.0}, {64, 0.5}}},
      {"noam", {{16, 1 / std::sqrt(4.0 * 17)}, {63, 1.0 / 16}}},
      {"tri_stage", {{16, 1.0}, {26, 1.0}, {63, 0.1}, {100, 0.01}}},
      {"plateau", {{16, 1.0}, {99, 1.0}}},
  };
  ScheduleOptions options;
  const auto names = config::schema_of(options).find("name")->range.choices;
  EXPECT_EQ(shapes.size(), names.size());
  for (const auto& shape : shapes) {
    ScheduleOptions schedule{.name = shape.name,
                             .warmup_steps = 16,
                             .warmup_init_lr = 0.04,
                             .warmup = "constant",
                             .boundaries = {36},
                             .multipliers = {0.3},
                             .decay_steps = 20,
                             .decay_rate = 0.25,
                             .period_steps = 20,
                             .hold_steps = 10};
    if (schedule.name == "polynomial") schedule.power = 2;
    expect_table(schedule, 1.0, 100, {{0, 0.04}, {1, 0.04}, {8, 0.04}, {15, 0.04}});
    expect_table(schedule, 1.0, 100, shape.after);
  }
}

TEST(Schedule, PiecewiseMultipliesTheFirstRateAtEachBoundary) {
  expect_table(
      {.name = "piecewise",
       .warmup_steps = 0,
       .boundaries = {30, 60, 80},
       .multipliers = {0.1, 0.01, 0.001}},
      3.2, 0,
      {{0, 3.2}, {29, 3.2}, {30, 0.32}, {59, 0.32}, {60, 0.032}, {80, 0.0032}, {900, 0.0032}});
}

TEST(Schedule, PiecewiseListsOfDifferentLengthsAreRefused) {
  EXPECT_THROW(learning_rate({.name = "piecewise", .warmup_steps = 0, .boundaries = {3}}, 1, 0, 5),
               Error);
}

TEST(Schedule, StepDropsOncePerPeriodAfterTheWarmUp) {
  expect_table({.name = "step", .warmup_steps = 10, .decay_steps = 20, .decay_rate = 0.5}, 1.0, 0,
               {{10, 1.0}, {29, 1.0}, {30, 0.5}, {49, 0.5}, {50, 0.25}});
}

TEST(Schedule, ExponentialFallsByItsRatePerPeriodFromItsBeginning) {
  const ScheduleOptions smooth{.name = "exponential",
                               .warmup_steps = 10,
                               .warmup_init_lr = 1,
                               .min_lr = 0.05,
                               .begin_steps = 100,
                               .decay_steps = 20,
                               .decay_rate = 0.25};
  expect_table(smooth, 1.0, 0,
               {{50, 1.0}, {100, 1.0}, {110, 0.5}, {120, 0.25}, {140, 0.0625}, {200, 0.05}});
  ScheduleOptions stairs = smooth;
  stairs.staircase = true;
  expect_table(stairs, 1.0, 0, {{100, 1.0}, {119, 1.0}, {120, 0.25}, {139, 0.25}, {140, 0.0625}});
}

TEST(Schedule, BeginStepsDelaysADecayThatEnds) {
  expect_table({.name = "linear", .warmup_steps = 0, .begin_steps = 50}, 1.0, 100,
               {{0, 1.0}, {50, 1.0}, {75, 0.5}, {100, 0.0}});
}

TEST(Schedule, CosineRestartsWithLongerPeriodsAndLowerPeaks) {
  expect_table({.name = "cosine_restarts",
                .warmup_steps = 10,
                .warmup_init_lr = 0,
                .min_lr = 0.2,
                .period_steps = 100,
                .period_growth = 2,
                .period_shrink = 0.5},
               1.0, 0,
               {{5, 0.5},       // warm-up
                {10, 1.0},      // first period: 100 updates
                {60, 0.6},      // half way between 1 and 0.2
                {110, 0.5},     // second: 200 updates, 0.5 to 0.1
                {210, 0.3},     // its middle
                {310, 0.25},    // third: 400 updates, 0.25 to 0.05
                {510, 0.15}});  // its middle
}

TEST(Schedule, CosineRestartsOfEqualPeriods) {
  expect_table({.name = "cosine_restarts",
                .warmup_steps = 0,
                .period_steps = 10,
                .period_growth = 1,
                .period_shrink = 0.1},
               1.0, 0, {{0, 1.0}, {5, 0.5}, {10, 0.1}, {15, 0.05}, {20, 0.01}, {35, 0.0005}});
}

TEST(Schedule, NoamRisesAndFallsWithTheRootOfTheStep) {
  const ScheduleOptions noam{.name = "noam", .warmup_steps = 16};
  expect_table(noam, 2.0, 0,
               {{0, 2.0 / 8 / 64}, {7, 2.0 / 8 * 8 / 64}, {15, 2.0 / 8 / 4}, {63, 2.0 / 8 / 8}},
               /*width=*/64);
  ScheduleOptions capped = noam;
  capped.max_lr = 0.05;
  expect_table(capped, 2.0, 0, {{0, 2.0 / 8 / 64}, {15, 0.05}, {63, 2.0 / 8 / 8}}, /*width=*/64);
}

TEST(Schedule, NoamOfAModelWithoutAWidthIsRefusedWithWhatToUse) {
  for (const int64_t step : {0, 16, 1000}) {
    try {
      learning_rate({.name = "noam", .warmup_steps = 16}, 1.0, {.step = step});
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(error.message().find("the model's width"), std::string::npos) << error.message();
      EXPECT_NE(error.advice().find("inverse_sqrt"), std::string::npos) << error.advice();
    }
  }
}

TEST(Schedule, TheWidthChangesNoamAlone) {
  ScheduleOptions options;
  const auto names = config::schema_of(options).find("name")->range.choices;
  for (const auto& name : names) {
    const auto rate = [&](int64_t width) {
      return learning_rate({.name = name}, 1.0,
                           {.step = 5000, .total_steps = 10000, .width = width});
    };
    EXPECT_EQ(rate(64) != rate(256), name == "noam") << name;
  }
}

TEST(Schedule, NoWarmUpHasAFloor) {
  ScheduleOptions options;
  const auto names = config::schema_of(options).find("name")->range.choices;
  for (const auto& name : names) {
    ScheduleOptions schedule{
        .name = name, .warmup_steps = 16, .warmup_init_lr = 0.01, .min_lr = 0.1};
    const double expected = name == "noam" ? 0.5 * 3 / 64 : 0.01 + 0.99 * 2 / 16;
    expect_table(schedule, 1.0, 100, {{2, expected}});
    EXPECT_LT(learning_rate(schedule, 1.0, {.step = 0, .total_steps = 100, .width = 4}),
              schedule.min_lr)
        << name;
    schedule.warmup = "constant";
    expect_table(schedule, 1.0, 100, {{15, 0.01}});
  }
  // 1 / sqrt(4 * 1000) is below it, long after the warm-up.
  expect_table({.name = "noam", .warmup_steps = 16, .min_lr = 0.1}, 1.0, 0,
               {{24, 0.1}, {999, 0.1}});
}

TEST(Schedule, TriStageHoldsThePeakAndThenFallsExponentially) {
  expect_table({.name = "tri_stage",
                .warmup_steps = 10,
                .warmup_init_lr = 0.01,
                .hold_steps = 40,
                .final_scale = 0.01},
               1.0, 150,
               {{0, 0.01}, {5, 0.505}, {10, 1.0}, {50, 1.0}, {100, 0.1}, {150, 0.01}, {400, 0.01}});
}

TEST(Schedule, PlateauFallsWithEachReduction) {
  const ScheduleOptions plateau{
      .name = "plateau", .warmup_steps = 4, .warmup_init_lr = 0, .min_lr = 1e-3};
  const double expected[] = {1.0, 0.1, 0.01, 1e-3, 1e-3};
  for (int64_t reductions = 0; reductions < 5; ++reductions) {
    EXPECT_NEAR(learning_rate(plateau, 1.0, {.step = 100, .reductions = reductions}),
                expected[reductions], 1e-12);
  }
  EXPECT_NEAR(learning_rate(plateau, 1.0, {.step = 1, .reductions = 3}), 0.25, 1e-12);
}

TEST(Plateau, CountsValidationsWithoutProgress) {
  const ScheduleOptions schedule{.name = "plateau", .patience = 1, .threshold = 0.01};
  struct Validation {
    double loss;
    int64_t reductions;
  };
  Plateau plateau;
  for (const auto& [loss, reductions] :
       std::vector<Validation>{{std::nan(""), 0},
                               {5.0, 0},
                               {4.0, 0},
                               {3.99, 0},  // less than 1 %: forgiven
                               {3.98, 1},  // not a second time
                               {3.97, 1},
                               {3.90, 1},  // progress
                               {4.10, 1},
                               {std::nan(""), 2},
                               {4.00, 2},
                               {4.00, 3}}) {
    plateau = after_validation(schedule, plateau, loss);
    EXPECT_EQ(plateau.reductions, reductions) << loss;
  }
  EXPECT_EQ(plateau.best, 3.90);
}

TEST(Plateau, NegativeLossesCanMakeProgress) {
  Plateau plateau;
  for (const double loss : {-1.0, -2.0, -3.0}) plateau = after_validation({}, plateau, loss);
  EXPECT_EQ(plateau.reductions, 0);
  EXPECT_EQ(plateau.best, -3.0);
}

TEST(Schedule, EveryNameOfTheOptionsIsKnownAndAnUnknownOneListsThem) {
  ScheduleOptions options;
  const auto names = config::schema_of(options).find("name")->range.choices;
  for (const auto& name : names) {
    const ScheduleAt at{.step = 5000, .total_steps = 10000, .width = 512};
    EXPECT_GT(learning_rate({.name = name}, 1.0, at), 0) << name;
  }
  try {
    learning_rate({.name = "noom"}, 1, 0, 0);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("cosine_restarts"), std::string::npos) << error.message();
  }
}

TEST(PeakLearningRate, FollowsTheBatchAsAsked) {
  OptimOptions options{.lr = 1e-3};
  EXPECT_DOUBLE_EQ(peak_learning_rate(options, 4096), 1e-3);
  options.reference_batch = 1024;
  EXPECT_DOUBLE_EQ(peak_learning_rate(options, 4096), 1e-3);
  options.lr_scaling = "linear";
  EXPECT_DOUBLE_EQ(peak_learning_rate(options, 4096), 4e-3);
  EXPECT_DOUBLE_EQ(peak_learning_rate(options, 512), 0.5e-3);
  options.lr_scaling = "sqrt";
  EXPECT_DOUBLE_EQ(peak_learning_rate(options, 4096), 2e-3);
}

}  // namespace
}  // namespace stretto::optim
