#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "experiment/rules.h"
#include "families/translation/translation_options.h"
#include "tests/experiment/sound_experiment.h"

namespace stretto::experiment {
namespace {

using test::Edit, test::problem_of, test::problems_of, test::sound;

TEST(Rules, TheWarmUpIsShorterThanTheRun) {
  EXPECT_EQ(problem_of([](auto& e) { e.train.max_steps = 4000; }),
            "`schedule.warmup_steps` (default): a warm-up of 4,000 updates is not shorter than "
            "the run (4,000)");
}

TEST(Rules, SchedulesThatEndMustKnowWhere) {
  for (const char* name : {"linear", "cosine", "polynomial"}) {
    EXPECT_EQ(problem_of([&](auto& e) {
                e.schedule.name = name;
                e.train.max_steps = 0;
                e.train.max_hours = 5;
              }),
              "`schedule.name` (default): \"" + std::string(name) + "\" must know where it ends");
    EXPECT_EQ(problem_of([&](auto& e) {
                e.schedule.name = name;
                e.train.max_steps = 0;
                e.train.max_epochs = 5;
              }),
              "0 problems")
        << "the last update of the last epoch is known when training starts";
  }
  EXPECT_EQ(problem_of([](auto& e) {
              e.schedule.name = "linear";
              e.schedule.total_steps = 3000;
            }),
            "`schedule.total_steps` (default): the decay would end, at update 3000, inside the "
            "warm-up");
}

TEST(Rules, AWarmUpThatIsAShareStandsAloneAndKnowsOfWhat) {
  struct Row {
    Edit edit;
    const char* problem;
  };
  const auto share = [](Experiment& e, double ratio) {
    e.schedule.warmup_ratio = ratio;
    e.schedule.warmup_steps = 0;
  };
  for (const Row& row : std::vector<Row>{
           {[](auto& e) { e.schedule.warmup_ratio = 0.1; },
            "`schedule.warmup_ratio` (default): stands beside schedule.warmup_steps = 4000, and "
            "both say how long the warm-up is"},
           {[&](auto& e) { share(e, 0.1); }, "0 problems"},
           {[&](auto& e) {
              share(e, 0.1);
              e.schedule.name = "noam";
            },
            "0 problems"},
           {[&](auto& e) {
              share(e, 0.1);
              e.train.max_steps = 0;
              e.train.max_epochs = 3;
            },
            "0 problems"},
           {[&](auto& e) {
              share(e, 0.1);
              e.train.max_steps = 0;
              e.train.max_hours = 3;
            },
            "`schedule.warmup_ratio` (default): is a share of updates whose number nobody knows"},
           {[&](auto& e) {
              share(e, 0.1);
              e.train.max_steps = 0;
              e.train.max_hours = 3;
              e.schedule.total_steps = 1000;
            },
            "0 problems"},
           {[&](auto& e) {
              share(e, 0.6);
              e.train.max_steps = 1;
            },
            "`schedule.warmup_ratio` (default): a warm-up of 1 update is not shorter than the run "
            "(1)"},
           {[&](auto& e) {  // the beginning of a longer run
              e.schedule.name = "linear";
              e.schedule.warmup_steps = 100;
              e.schedule.total_steps = 600;
              e.train.max_steps = 60;
            },
            "0 problems"},
           {[&](auto& e) {
              e.schedule.name = "inverse_sqrt";
              e.schedule.warmup_steps = 100;
              e.train.max_steps = 60;
            },
            "`schedule.warmup_steps` (default): a warm-up of 100 updates is not shorter than the "
            "run (60)"},
           {[&](auto& e) {
              share(e, 0.5);
              e.schedule.name = "tri_stage";
              e.schedule.hold_steps = 10000;
            },
            "`schedule.hold_steps` (default): the decay would begin after its end, update 20000"},
       }) {
    EXPECT_EQ(problem_of(row.edit), row.problem);
  }
}

TEST(Rules, TheDecayBeginsBeforeItsEnd) {
  const auto problem = [](int64_t begin, int64_t hold, const char* name = "tri_stage") {
    return problem_of([&](auto& e) {
      e.schedule.name = name;
      e.schedule.begin_steps = begin;
      e.schedule.hold_steps = hold;
    });
  };
  const std::string after = " (default): the decay would begin after its end, update 20000";
  EXPECT_EQ(problem(0, 16000), "`schedule.hold_steps`" + after);
  EXPECT_EQ(problem(20000, 0), "`schedule.begin_steps`" + after);
  EXPECT_EQ(problem(5000, 15000), "`schedule.hold_steps`" + after);
  EXPECT_EQ(problem(15000, 5000), "`schedule.begin_steps`" + after);
  EXPECT_EQ(problem(0, 15999), "0 problems");
  EXPECT_EQ(problem(19999, 0), "0 problems");
  EXPECT_EQ(problem(0, 16000, "cosine"), "0 problems") << "cosine holds nothing";
}

TEST(Rules, TheFloorIsBelowTheHighestRateOfTheRun) {
  struct Row {
    std::function<void(Experiment&)> edit;
    const char* problem;
  };
  const auto scaled = [](Experiment& e, int64_t reference, double min_lr) {
    e.optim.lr = 1e-3;
    e.optim.lr_scaling = "linear";
    e.optim.reference_batch = reference;
    translation_of(e).data.max_tokens = 2000;
    e.schedule.min_lr = min_lr;
  };
  const auto noam = [](Experiment& e, double min_lr, double max_lr = 0) {
    e.schedule.name = "noam";
    e.optim.lr = 1;
    e.schedule.warmup_steps = 4999;
    e.schedule.min_lr = min_lr;
    e.schedule.max_lr = max_lr;
  };
  for (const Row& row : std::vector<Row>{
           {[](auto& e) { e.schedule.min_lr = 0.1; }, "0.1 is above optim.lr = 0.0005"},
           {[](auto& e) { e.schedule.min_lr = 0.0005; }, ""},
           {[&](auto& e) { scaled(e, 100, 2e-3); }, ""},
           {[&](auto& e) { scaled(e, 100, 0.03); },
            "0.03 is above the peak, 0.02: optim.lr scaled from optim.reference_batch to "
            "2,000 tokens an update"},
           {[&](auto& e) { scaled(e, 100'000, 5e-4); },
            "0.0005 is above the peak, 2e-5: optim.lr scaled from optim.reference_batch to "
            "2,000 tokens an update"},
           {[&](auto& e) {
              scaled(e, 100, 0.005);
              translation_of(e).data.max_samples = 8;
              translation_of(e).data.max_src_tokens = translation_of(e).data.max_tgt_tokens = 50;
            },
            "0.005 is above the peak, 0.004: optim.lr scaled from optim.reference_batch to "
            "400 tokens an update"},
           // 1 / sqrt(512 * 5000) = 0.000625
           {[&](auto& e) { noam(e, 0.5); }, "0.5 is above the highest rate of noam, 0.000625"},
           {[&](auto& e) { noam(e, 6e-4); }, ""},
           {[&](auto& e) { noam(e, 6e-4, 5e-4); },
            "0.0006 is above the highest rate of noam, 0.0005"},
       }) {
    EXPECT_EQ(problem_of(row.edit),
              *row.problem == '\0' ? std::string("0 problems")
                                   : std::string("`schedule.min_lr` (default): ") + row.problem);
  }
}

TEST(Rules, PiecewiseNeedsAMultiplierForEachBoundary) {
  EXPECT_EQ(problem_of([](auto& e) {
              e.schedule.name = "piecewise";
              e.schedule.boundaries = {1000, 2000};
              e.schedule.multipliers = {0.1};
            }),
            "`schedule.boundaries` (default): 2 boundaries and 1 multipliers");
  EXPECT_EQ(problem_of([](auto& e) {
              e.schedule.name = "piecewise";
              e.schedule.boundaries = {2000, 1000};
              e.schedule.multipliers = {0.1, 0.01};
            }),
            "`schedule.boundaries` (default): the boundaries do not ascend");
}

TEST(Rules, NoamHasTheWidthFromTheModelAndAFormerKeyThatAgrees) {
  const auto with = [](int64_t width, bool given) {
    return [=](Experiment& e) {
      e.schedule.name = "noam";
      e.schedule.d_model = {.value = width, .given = given};
    };
  };
  EXPECT_EQ(problem_of(with(256, true)),
            "`schedule.d_model` (default): 256 is not model.d_model = 512");
  EXPECT_EQ(problem_of(with(512, true)), "0 problems");
  EXPECT_EQ(problem_of(with(256, false)), "0 problems");
  EXPECT_EQ(problem_of([](Experiment& e) { e.schedule.d_model = {.value = 256, .given = true}; }),
            "0 problems")
      << "other schedules never read it";
}

TEST(Rules, ScalingTheRateNeedsTheBatchThatItWasChosenFor) {
  EXPECT_EQ(problem_of([](auto& e) { e.optim.lr_scaling = "linear"; }),
            "`optim.lr_scaling` (default): \"linear\" needs optim.reference_batch");
}

TEST(Rules, AConstantWarmUpNamesItsRate) {
  Experiment e = sound();
  e.schedule.warmup = "constant";
  ASSERT_EQ(problems_of(e).size(), 1u);
  EXPECT_EQ(problems_of(e)[0].what,
            "a constant warm-up trains at schedule.warmup_init_lr, whose default of 1e-7 is for a "
            "line that leaves it at once");
  e.optim.lr = 0.25;
  e.optim.reference_batch = 1000;
  e.optim.lr_scaling = "linear";
  EXPECT_NE(problems_of(e)[0].hint.find("optim.lr = 0.25 is that of optim.reference_batch"),
            std::string::npos);
  config::Origins origins;
  origins.set(
      "schedule.warmup_init_lr",
      {.file = "a.toml", .order = {.source = 0, .line = 3, .column = 1}, .override_text = ""});
  EXPECT_TRUE(problems_of(e, origins).empty());
  e.schedule.warmup_steps = 0;
  EXPECT_TRUE(problems_of(e).empty());
}

TEST(Rules, OnlyTriStageHolds) {
  const auto problem = [](const char* name) {
    return problem_of([&](auto& e) {
      e.schedule.name = name;
      e.schedule.hold_steps = 20000;
    });
  };
  EXPECT_EQ(problem("tri_stage"),
            "`schedule.hold_steps` (default): the decay would begin after its end, update 20000");
  EXPECT_EQ(problem("cosine"), "0 problems");
}

}  // namespace
}  // namespace stretto::experiment
