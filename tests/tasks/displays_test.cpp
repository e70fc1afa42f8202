#include "tasks/displays.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace stretto::tasks {
namespace {

struct OptionsOfNoFamily {};

// What std::visit asks of TaskChoice: a family that is new there does not compile until it has one.
TEST(FamilyDisplay, IsThatOfTheFamilyAloneAndOfNoOther) {
  EXPECT_FALSE((std::is_invocable_v<FamilyDisplay, const OptionsOfNoFamily&>));
  experiment::Experiment experiment;
  for (const auto& name : experiment::TaskChoice::names()) {
    ASSERT_TRUE(experiment.task.select(name));
    EXPECT_EQ(display_of(experiment).best_by, experiment.eval.best_metric) << name;
  }
  const auto count = [&](experiment::TaskChoice task) {
    experiment.task = std::move(task);
    return display_of(experiment).loss_unit.count;
  };
  EXPECT_EQ(count(experiment::QuestionAnsweringOptions{}),
            question_answering_display().loss_unit.count);
  EXPECT_EQ(count(experiment::MaskedLmOptions{}), masked_lm_display().loss_unit.count);
  EXPECT_NE(count(experiment::QuestionAnsweringOptions{}), count(experiment::MaskedLmOptions{}));
}

}  // namespace
}  // namespace stretto::tasks
