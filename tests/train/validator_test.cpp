#include "train/validator.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/train/toy_task.h"

namespace stretto::train {
namespace {

using test::toy_validation;

/// Plays the scores that it is given, and remembers what it was asked with.
class PlayedTask : public test::ToyTask {
 public:
  bool can_validate() const override { return has_data; }
  Validation validate() override {
    trained = model().is_training();
    compute = kernels::ComputeScope::current();
    return ToyTask::validate();
  }

  bool has_data = true, trained = true;
  kernels::Compute compute = kernels::Compute::kFp32;
};

runs::TrainState at(int64_t step) {
  runs::TrainState state;
  state.step = step;
  return state;
}

class ValidatorTest : public ::testing::Test {
 protected:
  Validator validator() { return {task_, {.eval = eval_, .schedule = schedule_}}; }

  /// Validates at these steps; @return the reductions of the schedule.
  static int64_t judged(Validator& validator, runs::TrainState& state,
                        const std::vector<std::pair<int64_t, double>>& losses) {
    for (const auto& [step, loss] : losses) {
      state.step = step;
      validator.judge(toy_validation(loss), state);
    }
    return validator.reductions();
  }

  PlayedTask task_;
  ValidationOptions eval_{.every = 4};
  optim::ScheduleOptions schedule_{.name = "plateau", .patience = 0};
};

TEST_F(ValidatorTest, AValidationIsDueAtIntervalsAndAtTheEndAndOncePerStep) {
  const Validator tried = validator();
  EXPECT_FALSE(tried.is_due(at(3), false));
  EXPECT_TRUE(tried.is_due(at(3), true));
  EXPECT_TRUE(tried.is_due(at(4), false));
  auto state = at(4);
  state.validated_step = 4;
  EXPECT_FALSE(tried.is_due(state, true)) << "it was made before a resume";
  task_.has_data = false;
  EXPECT_FALSE(tried.is_due(at(4), true));
}

TEST_F(ValidatorTest, TheStartIsValidatedOnlyWhereAskedAndOnce) {
  EXPECT_FALSE(validator().is_due(at(0), true));
  eval_.at_start = true;
  Validator tried = validator();
  auto state = at(0);
  EXPECT_TRUE(tried.is_due(state, false));
  EXPECT_FALSE(tried.judge(toy_validation(3), state));
  EXPECT_FALSE(tried.is_due(state, false));
  EXPECT_TRUE(state.quality.empty()) << "weights before the first update are no result";
}

TEST_F(ValidatorTest, TheTaskValidatesInEvalModeAndInTheArithmeticOfValidation) {
  task_.nlls = {2.5};
  Validator tried(task_, {.compute = kernels::Compute::kBf16});
  task_.model().train();
  EXPECT_EQ(find_score(tried.validate().scores, "nll")->value, 2.5);
  EXPECT_FALSE(task_.trained);
  EXPECT_EQ(task_.compute, kernels::Compute::kBf16);
  EXPECT_EQ(kernels::ComputeScope::current(), kernels::Compute::kFp32);
}

TEST_F(ValidatorTest, TheBestIsTheFirstOfEqualsByTheScoreThatIsNamed) {
  eval_.best_metric = "bleu";
  Validator tried(task_, {.eval = eval_, .higher_is_better = true, .schedule = schedule_});
  runs::TrainState state;
  const auto is_best = [&](int64_t step, double bleu) {
    state.step = step;
    return tried.judge({.scores = {{.name = "loss", .value = static_cast<double>(step)},
                                   {.name = "bleu", .value = bleu}}},
                       state);
  };
  EXPECT_TRUE(is_best(4, 20));
  EXPECT_FALSE(is_best(8, 19));
  EXPECT_TRUE(is_best(12, 21));
  EXPECT_FALSE(is_best(16, 21));
  EXPECT_FALSE(is_best(20, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(state.quality.contains(20));
  EXPECT_EQ(state.validated_step, 20);
  EXPECT_EQ(state.bad_validations, 2);
}

TEST_F(ValidatorTest, AValidationBetweenIntervalsMovesNeitherPatienceNorPlateau) {
  Validator tried = validator();
  runs::TrainState state;
  EXPECT_EQ(judged(tried, state, {{4, 3}, {6, 5}, {7, 1}}), 0);
  EXPECT_EQ(state.bad_validations, 0);
  EXPECT_EQ(state.best_step(), 7);
  EXPECT_EQ(judged(tried, state, {{8, 2.5}}), 0) << "better than that of step 4";
  EXPECT_EQ(judged(tried, state, {{12, 4}}), 1);
  EXPECT_EQ(state.bad_validations, 1);
}

// A pruned model is another one: nothing from before is compared with it.
TEST_F(ValidatorTest, BeginningAnewForgetsTheBestButNotTheReductions) {
  Validator tried = validator();
  runs::TrainState state;
  EXPECT_EQ(judged(tried, state, {{4, 1}, {8, 2}}), 1);
  EXPECT_EQ(state.bad_validations, 1);
  tried.begin_anew(state);
  EXPECT_EQ(state.best_step(), 0);
  EXPECT_EQ(state.bad_validations, 0);
  EXPECT_EQ(judged(tried, state, {{12, 3}}), 1) << "worse than before, but the first of its kind";
  EXPECT_EQ(state.best_step(), 12);
  EXPECT_EQ(judged(tried, state, {{16, 4}}), 2);
}

TEST_F(ValidatorTest, PatienceWaitsForTheLastPruning) {
  Validator tried(task_, {.eval = eval_, .pruned_after = 8});
  runs::TrainState state;
  judged(tried, state, {{4, 1}, {8, 2}});
  EXPECT_EQ(state.bad_validations, 0);
  judged(tried, state, {{12, 2}});
  EXPECT_EQ(state.bad_validations, 1);
}

TEST_F(ValidatorTest, ThePlateauGoesOnFromACheckpoint) {
  Validator whole = validator(), first = validator();
  runs::TrainState state;
  judged(whole, state, {{4, 2}, {8, 3}});
  EXPECT_EQ(whole.reductions(), 1);
  first.restore(whole.state());
  EXPECT_EQ(first.state(), whole.state());
  EXPECT_EQ(judged(first, state, {{12, 2.5}}), 2) << "it knows the best loss";
  first.restore({});
  EXPECT_EQ(first.reductions(), 0);
  EXPECT_FALSE(first.state().contains("best")) << "there is none yet, and JSON has no infinity";
}

TEST_F(ValidatorTest, AScoreThatTheTaskHasNotIsNamedWithThoseThatItHas) {
  eval_.best_metric = "bleu";
  Validator tried = validator();
  auto state = at(4);
  const auto error =
      stretto::testing::failure(ExitCode::kUsage, [&] { tried.judge(toy_validation(1), state); });
  EXPECT_NE(error.message().find("no score `bleu`"), std::string::npos) << error.message();
  EXPECT_EQ(error.advice(), "it has loss, nll, ppl");
}

TEST_F(ValidatorTest, AveragingBeginsByRegularValidationsAndGoesOnAfterAResume) {
  const ValidatorSetup setup{.eval = eval_, .schedule = schedule_, .average_nonmono = 1};
  Validator first(task_, setup);
  runs::TrainState state;
  state.skipped_updates = 2;
  judged(first, state, {{4, 3.0}, {8, 2.0}, {10, 9.0}, {12, 2.5}});  // 10 is the end of a process
  EXPECT_FALSE(first.average_begin().has_value());
  Validator second(task_, setup);
  second.restore(first.state());
  judged(second, state, {{16, 2.6}});
  EXPECT_EQ(second.average_begin(), 14);  // of the updates that were stepped
  Validator third(task_, setup);
  third.restore(second.state());
  EXPECT_EQ(third.average_begin(), 14);
  third.restore({});
  EXPECT_FALSE(third.average_begin().has_value());
  EXPECT_EQ(validator().state().size(), 2U) << "without it a checkpoint has what it had";
}

}  // namespace
}  // namespace stretto::train
