#include "train/nonfinite_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto::train {
namespace {

using Action = NonfiniteDecision::Action;

constexpr FailedUpdate kPlain{.loss_finite = false, .scaled = false};
constexpr FailedUpdate kOverflow{.loss_finite = true, .scaled = true};

ForensicsOptions options(const std::string& policy, int64_t stop_after) {
  ForensicsOptions result;
  result.policy = policy;
  result.stop_after = stop_after;
  result.max_rollbacks = 2;
  return result;
}

/// One letter for each update: s skip, S stop, R rollback; in upper case X before it: examined.
std::string play(NonfinitePolicy& policy, const std::string& updates,
                 const FailedUpdate& failure = kPlain) {
  std::string decisions;
  for (const char update : updates) {
    if (update == '.') {
      policy.succeeded();
      decisions += '.';
      continue;
    }
    const auto decision = policy.failed(failure);
    if (decision.examine) decisions += 'X';
    decisions += decision.action == Action::kSkip   ? 's'
                 : decision.action == Action::kStop ? 'S'
                                                    : 'R';
  }
  return decisions;
}

TEST(NonfinitePolicy, SkipGoesOnAndExaminesTheFirstOfARow) {
  NonfinitePolicy policy(options("skip", 1));
  EXPECT_EQ(play(policy, "..f.fff."), "..Xs.Xsss.");
  // Three reports in all (train.forensics.max_reports).
  EXPECT_EQ(play(policy, "f.f.f"), "Xs.s.s");
}

TEST(NonfinitePolicy, FiftyInARowAlwaysStop) {
  NonfinitePolicy policy(options("skip", 1));
  const std::string fails(49, 'f'), skips(49, 's');
  EXPECT_EQ(play(policy, fails), "X" + skips);
  EXPECT_EQ(play(policy, "."), ".");
  EXPECT_EQ(play(policy, fails), "X" + skips);
  EXPECT_EQ(play(policy, "f"), "S");
}

TEST(NonfinitePolicy, StopStopsAfterTheGivenNumberInARow) {
  NonfinitePolicy policy(options("stop", 3));
  EXPECT_EQ(play(policy, "ff.fff"), "Xss.XssS");
  NonfinitePolicy at_once(options("stop", 1));
  EXPECT_EQ(play(at_once, ".f"), ".XS");
}

TEST(NonfinitePolicy, RollbackHalvesTheLearningRateAndStopsWhenItsTriesAreUsedUp) {
  NonfinitePolicy policy(options("rollback", 2));
  struct Row {
    std::string updates, decisions;
    double lr_factor;
  };
  const std::vector<Row> rows{{"..f.", "..Xs.", 1},
                              {"ff", "XsR", 0.5},
                              {"...f.", "...Xs.", 0.5},
                              {"ff", "sR", 0.25},
                              {".ff", ".sS", 0.25}};
  for (const auto& row : rows) {
    EXPECT_EQ(play(policy, row.updates), row.decisions);
    EXPECT_EQ(policy.lr_factor(), row.lr_factor) << row.updates;
  }
  const Error error = policy.stop_error(1234, "runs/a/forensics/step_00001234.json");
  EXPECT_EQ(error.code(), ExitCode::kNumeric);
  EXPECT_NE(std::string(error.what()).find("step 1,234"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("after 2 rollbacks (learning rate times 0.25)"),
            std::string::npos)
      << error.what();
  EXPECT_NE(error.advice().find("`stretto replay runs/a/forensics/step_00001234.json`"),
            std::string::npos)
      << error.advice();
}

TEST(NonfinitePolicy, RoutineOverflowsOfALossScalerAreNotExamined) {
  NonfinitePolicy policy(options("skip", 1));
  EXPECT_EQ(play(policy, "f.ff.fff.ffffff.", kOverflow), "s.ss.sss.sssXsss.");
  // A loss that is not finite has nothing to do with its scale.
  EXPECT_TRUE(policy.failed({.loss_finite = false, .scaled = true}).examine);
}

TEST(NonfinitePolicy, TheLastChanceIsExaminedEvenIfItLooksLikeRoutine) {
  NonfinitePolicy policy(options("stop", 2));
  EXPECT_EQ(play(policy, "ff", kOverflow), "sXS");
}

TEST(NonfinitePolicy, ARestoredOneGoesOnWhereTheOtherWas) {
  NonfinitePolicy first(options("rollback", 3)), second(options("rollback", 3));
  play(first, "fff.ff");
  second.restore(first.state());
  EXPECT_EQ(second.lr_factor(), 0.5);
  EXPECT_EQ(second.skips_in_a_row(), 2);
  EXPECT_EQ(play(first, "f.f"), play(second, "f.f"));
  NonfinitePolicy fresh(options("stop", 3));
  fresh.restore({});
  EXPECT_EQ(play(fresh, "fff"), "XssS");
}

}  // namespace
}  // namespace stretto::train
