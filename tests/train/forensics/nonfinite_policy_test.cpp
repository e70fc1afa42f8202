#include "train/forensics/nonfinite_policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/config/is_read.h"

namespace stretto::train {
namespace {

using Action = NonfiniteDecision::Action;

constexpr FailedUpdate kPlain{.loss_finite = false, .scaled = false};
constexpr FailedUpdate kOverflow{.loss_finite = true, .scaled = true};
constexpr FailedUpdate kGradient{.loss_finite = true, .scaled = false};

ForensicsOptions options(const std::string& policy, int64_t stop_after) {
  ForensicsOptions result;
  result.policy = policy;
  result.stop_after = stop_after;
  result.max_rollbacks = 2;
  return result;
}

/// Plays updates: f failed, o overflowed, anything else was fine. One letter for each of them: s
/// skip, S stop, R rollback; in upper case X before it: examined.
std::string play(NonfinitePolicy& policy, const std::string& updates,
                 const FailedUpdate& failure = kPlain) {
  std::string decisions;
  for (const char update : updates) {
    if (update == '.') {
      policy.succeeded();
      decisions += '.';
      continue;
    }
    const auto decision = policy.failed(update == 'o' ? kOverflow : failure);
    if (decision.action == Action::kRollback) policy.rolled_back(0, 0);
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
  const Error error =
      policy.stop_error({.step = 1234, .report = "runs/a/forensics/step_00001234.json"});
  EXPECT_EQ(error.code(), ExitCode::kNumeric);
  EXPECT_NE(std::string(error.what()).find("step 1,234"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("after 2 rollbacks (learning rate times 0.25)"),
            std::string::npos)
      << error.what();
  EXPECT_NE(error.advice().find("`stretto replay runs/a/forensics/step_00001234.json`"),
            std::string::npos)
      << error.advice();
}

// What `read_with` says behind a key's declaration is held against what is decided.
TEST(NonfinitePolicy, ReadsTheKeysThatSaySo) {
  using O = ForensicsOptions;
  const std::map<std::string, std::function<void(O&)>> changes{
      {"stop_after", [](O& o) { o.stop_after = 3; }},
      {"rollback_lr_factor", [](O& o) { o.rollback_lr_factor = 0.25; }},
      {"max_rollbacks", [](O& o) { o.max_rollbacks = 1; }},
      {"max_reports", [](O& o) { o.max_reports = 0; }},
  };
  const auto decided = [](const O& made) {
    NonfinitePolicy policy(made);
    const std::string decisions = play(policy, "ff.ffff.ff.ffff");
    return decisions + ", learning rate times " + std::to_string(policy.lr_factor());
  };
  for (const char* name : {"skip", "stop", "rollback"}) {
    const O before = options(name, 2);
    for (const auto& [key, apply] : changes) {
      O changed = before;
      apply(changed);
      EXPECT_EQ(decided(changed) != decided(before), stretto::testing::is_read(key, before))
          << key << " of " << name;
    }
  }
}

TEST(NonfinitePolicy, RoutineOverflowsOfALossScalerAreNotExamined) {
  NonfinitePolicy policy(options("skip", 1));
  EXPECT_EQ(play(policy, "f.ff.fff.ffffff.", kOverflow), "s.ss.sss.sssXsss.");
  // A loss that is not finite has nothing to do with its scale.
  EXPECT_TRUE(policy.failed({.loss_finite = false, .scaled = true}).examine);
}

// With large micro-batches backoff is twelve halvings away from its scale.
TEST(NonfinitePolicy, OverflowsBeforeTheFirstGoodUpdateAreRoutineHoweverMany) {
  NonfinitePolicy policy(options("skip", 1));
  EXPECT_EQ(play(policy, "oooooooooooo.oooo."), "ssssssssssss.sssXs.");
  NonfinitePolicy ill(options("skip", 1)), unscaled(options("skip", 1));
  EXPECT_EQ(play(ill, "oooof"), "ssssXs");  // but not what is none of the scaler's
  EXPECT_EQ(play(unscaled, "ff", kGradient), "Xss");
  // A resume on the way: still looking; one behind it: found.
  for (const bool found : {false, true}) {
    NonfinitePolicy first(options("skip", 1)), second(options("skip", 1));
    play(first, found ? "o." : "oo");
    second.restore(first.state());
    EXPECT_EQ(play(second, "ooooo"), found ? "sssXss" : "sssss");
  }
}

// What a run folder refuses is no advice.
TEST(NonfinitePolicy, TheAdviceOfAStopCanBeFollowed) {
  const std::filesystem::path saved = "runs/a/checkpoints/step_00000100";
  const std::string from = "give others to a new run (--run NEW train.init_from=" + saved.string(),
                    anew = "give others to a new run (--run NEW)",
                    back = "or resume this run with train.forensics.policy=rollback",
                    clip = "optim.clip_norm = 1.0";
  struct Row {
    std::string policy, updates;
    AdviceContext run;
    std::vector<std::string> advised, not_advised;
  };
  const std::string fails(50, 'f'), overflows(50, 'o');
  const std::vector<Row> rows{
      {"skip", fails, {}, {clip, anew}, {back, "checkpoint", "init_from"}},
      {"skip", fails, {.checkpoint = saved}, {clip, from, back}, {}},
      {"stop", "ff", {.clip_norm = 1, .checkpoint = saved}, {from, back}, {clip}},
      {"stop", "ff", {.clip_norm = 25, .checkpoint = saved}, {clip, from, back}, {}},
      {"rollback", "ffffff", {.checkpoint = saved}, {from}, {back}},
      // A rollback does not answer what a scaler does.
      {"skip", overflows, {.checkpoint = saved}, {from}, {back}},
  };
  for (const Row& row : rows) {
    NonfinitePolicy policy(options(row.policy, row.policy == "skip" ? 50 : 2));
    EXPECT_TRUE(play(policy, row.updates).ends_with("S")) << row.policy << " " << row.updates;
    const auto advice = policy.stop_error({.step = 100, .run = row.run}).advice();
    for (const auto& text : row.advised) {
      EXPECT_NE(advice.find(text), std::string::npos) << text << " is missing in: " << advice;
    }
    for (const auto& text : row.not_advised) {
      EXPECT_EQ(advice.find(text), std::string::npos) << text << " is in: " << advice;
    }
  }
}

TEST(NonfinitePolicy, AScalersOwnStopKeepsItsReasonAndNamesNoRollback) {
  NonfinitePolicy policy(options("stop", 1));
  play(policy, "f");
  const Error error = policy.stop_error(
      {ExitCode::kNumeric, "no smaller scale"},
      {.step = 7,
       .report = "r.json",
       .scale = "lower train.loss_scale.min, 8",
       .run = {.clip_norm = 1, .checkpoint = "runs/a/checkpoints/step_00000004"}});
  EXPECT_EQ(error.code(), ExitCode::kNumeric);
  EXPECT_EQ(std::string(error.what()), "no smaller scale");
  EXPECT_EQ(error.advice(),
            "lower train.loss_scale.min, 8; or try a lower optim.lr or a longer "
            "schedule.warmup_steps; this run's folder keeps its values: give others to a new run "
            "(--run NEW train.init_from=runs/a/checkpoints/step_00000004); `stretto replay r.json` "
            "runs the update again");
}

TEST(NonfinitePolicy, OverflowsThatALossScalerAnswersDoNotCountForStopAfter) {
  struct Row {
    std::string policy, updates, decisions;
  };
  const std::vector<Row> rows{{"stop", "oo.ooo.", "ss.sss."},
                              {"stop", "oofof", "ssXssS"},  // two that are no overflows
                              {"rollback", "fo.fo.", "Xss.Xss."},
                              {"rollback", "oofoofoof", "ssXsssRssXs"}};
  for (const auto& row : rows) {
    NonfinitePolicy policy(options(row.policy, 2));
    EXPECT_EQ(play(policy, row.updates), row.decisions) << row.updates;
  }
  // Where no scaler reacts, a gradient that is not finite counts like a loss.
  NonfinitePolicy unscaled(options("stop", 2));
  EXPECT_EQ(play(unscaled, "ff", kGradient), "XsS");
}

TEST(NonfinitePolicy, FiftySkipsInARowStopUnderEachPolicyEvenIfAllAreOverflows) {
  for (const char* name : {"skip", "stop", "rollback"}) {
    NonfinitePolicy policy(options(name, 1));
    EXPECT_EQ(play(policy, std::string(50, 'o')), std::string(49, 's') + "XS") << name;
    NonfinitePolicy later(options(name, 1));
    EXPECT_EQ(play(later, "." + std::string(50, 'o')), ".sssX" + std::string(46, 's') + "S")
        << name;
  }
}

TEST(NonfinitePolicy, ARollbackGoesToTheLastGoodCheckpointAndFurtherBackEachTimeItFailsAgain) {
  NonfinitePolicy policy(options("rollback", 1));
  struct Row {
    RollbackChoice choice;
    int64_t target;
    const char* why;
  };
  const std::vector<Row> rows{
      {{{2, 4, 6, 8}, /*good=*/6, /*failed=*/10}, 6, "nothing finite came after 8"},
      {{{2, 4, 6, 7, 8}, 8, 10}, 4, "the same update fails again"},
      {{{2, 4, 5, 6}, 6, 9}, 2, "an earlier one does"},
      {{{2, 3, 8, 12}, 8, 14}, 8, "it got past 10: another failure"},
      {{{2, 3, 8}, 8, 30}, 3, "past 14, but from the same checkpoint"},
      {{{3, 4, 20}, 20, 30}, 3, "none is older: its next try has a smaller rate"},
      {{{6, 7}, 7, 30}, 6, "3 is gone: the oldest"},
      {{{6, 7}, 5, 30}, 0, "none is good"},
      {{{}, 5, 30}, 0, "none is there"}};
  for (const auto& [choice, target, why] : rows) {
    EXPECT_EQ(policy.rollback_target(choice), target) << why;
    NonfinitePolicy resumed(options("rollback", 1));
    resumed.restore(policy.state());
    EXPECT_EQ(resumed.rollback_target(choice), target) << why;
    if (target > 0) policy.rolled_back(choice.failed_step, target);
  }
  EXPECT_EQ(policy.rollbacks(), 7);
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
