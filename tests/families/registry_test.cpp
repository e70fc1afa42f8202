#include <gtest/gtest.h>

#include <set>

#include "experiment/experiment_schema.h"
#include "experiment/family_spec.h"
#include "families/masked_lm/masked_lm_display.h"
#include "families/question_answering/question_answering_display.h"

namespace stretto::experiment {
namespace {

TEST(Families, EachHasRulesOfItsOwn) {
  Experiment experiment;
  std::set<const TaskRules*> rules;
  for (const auto& name : TaskChoice::names()) {
    ASSERT_TRUE(experiment.task.select(name));
    ASSERT_NE(find_task_rules(experiment), nullptr) << name;
    rules.insert(find_task_rules(experiment));
  }
  EXPECT_EQ(rules.size(), families().size());
}

TEST(Families, AnUnknownNameHasNeitherRulesNorAFamily) {
  Experiment experiment;
  experiment.task.name_to_bind() = "origami";
  EXPECT_EQ(find_family(experiment), nullptr);
  EXPECT_EQ(find_task_rules(experiment), nullptr);
}

TEST(Families, TheDisplayIsThatOfTheFamily) {
  Experiment experiment;
  const auto count = [&](const char* name) {
    EXPECT_TRUE(experiment.task.select(name));
    return display_of(experiment).loss_unit.count;
  };
  EXPECT_EQ(count("question_answering"), tasks::question_answering_display().loss_unit.count);
  EXPECT_EQ(count("masked_lm"), tasks::masked_lm_display().loss_unit.count);
  EXPECT_NE(count("question_answering"), count("masked_lm"));
}

TEST(Families, TheDisplayMarksTheScoreOfBest) {
  Experiment experiment;
  for (const auto& name : TaskChoice::names()) {
    ASSERT_TRUE(experiment.task.select(name));
    experiment.eval.best_metric = "any " + name;
    EXPECT_EQ(display_of(experiment).best_by, experiment.eval.best_metric);
  }
}

TEST(Families, NamesOfOtherToolkitsLeadToNamesThatThereAre) {
  Experiment experiment;
  const auto schema = experiment_schema(experiment);
  const auto* key = schema.find("task.name");
  ASSERT_NE(key, nullptr);
  std::set<std::string> others;
  for (const auto& other : key->other_values) {
    EXPECT_TRUE(experiment.task.select(other.value)) << other.name;
    EXPECT_TRUE(others.insert(other.name).second) << other.name << " is a name of two families";
  }
  EXPECT_TRUE(others.contains("mlm"));
}

}  // namespace
}  // namespace stretto::experiment
