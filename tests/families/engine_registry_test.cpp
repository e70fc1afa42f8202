#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "experiment/experiment_schema.h"
#include "experiment/family_spec.h"
#include "experiment/task_rules.h"
#include "tasks/registry.h"
#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

TEST(Families, EachNameThatTheConfigurationTakesHasAFamilyOfItsOwn) {
  experiment::Experiment experiment;
  const auto schema = experiment::experiment_schema(experiment);
  const auto names = schema.find("task.name")->range.choices;
  EXPECT_EQ(names, experiment::TaskChoice::names());
  std::set<const Family*> families;
  for (const auto& name : names) {
    experiment.task.select(name);
    families.insert(&family_of(experiment));
  }
  EXPECT_FALSE(names.empty());
  EXPECT_EQ(families.size(), names.size());
}

TEST(Families, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  experiment::Experiment experiment;
  experiment.task.name_to_bind() = "origami";
  const Error error = testing::failure(ExitCode::kUsage, [&] { family_of(experiment); });
  EXPECT_NE(std::string(error.what()).find("`origami`"), std::string::npos) << error.what();
  EXPECT_NE(error.advice().find("translation"), std::string::npos) << error.advice();
}

// One list: what is drawn is what `best` may go by, and more.
TEST(Families, DrawTheScoresOfTheirList) {
  experiment::Experiment experiment;
  for (const auto& name : experiment::TaskChoice::names()) {
    experiment.task.select(name);
    const auto* rules = experiment::find_task_rules(experiment);
    ASSERT_NE(rules, nullptr) << name;
    const auto scores = rules->scores(experiment);
    const auto drawn = display_of(experiment).numbers;
    ASSERT_EQ(drawn.size(), scores.size()) << name;
    std::set<std::string> names;
    for (size_t i = 0; i < drawn.size(); ++i) {
      EXPECT_EQ(drawn[i].name, scores[i].name()) << name;
      EXPECT_EQ(drawn[i].higher_is_better, scores[i].higher_is_better()) << scores[i].name();
      EXPECT_TRUE(names.insert(scores[i].name()).second) << scores[i].name() << " twice";
    }
  }
}

TEST(Families, MarkTheValidationThatBestMeansAndNameWhatTheirLossIsDividedBy) {
  experiment::Experiment experiment;
  for (const auto& name : experiment::TaskChoice::names()) {
    experiment.task.select(name);
    const auto* rules = experiment::find_task_rules(experiment);
    ASSERT_NE(rules, nullptr) << name;
    const auto ranking = ranking_scores(rules->scores(experiment));
    EXPECT_FALSE(ranking.empty()) << name;
    for (const auto& score : ranking) {
      experiment.eval.best_metric = score.name();
      EXPECT_EQ(display_of(experiment).best_by, score.name()) << name;
    }
    EXPECT_NE(display_of(experiment).loss_unit.count, "") << name;
  }
}

// Who follows advice about memory must find the keys that it names.
TEST(Families, AdviceOnMemoryNamesKeysThatThereAre) {
  experiment::Experiment experiment;
  for (const auto& name : experiment::TaskChoice::names()) {
    experiment.task.select(name);
    const auto schema = experiment::experiment_schema(experiment);
    for (const auto use : {MemoryUse::kTrain, MemoryUse::kEval, MemoryUse::kInfer}) {
      const std::string advice = family_of(experiment).memory_advice(use);
      int64_t keys = 0;
      for (std::string word : split(advice, ' ')) {
        while (!word.empty() && (word.back() == ':' || word.back() == ',')) word.pop_back();
        if (word.find('.') == std::string::npos) continue;
        EXPECT_NE(schema.find(word), nullptr) << word;
        ++keys;
      }
      EXPECT_GE(keys, 1) << advice;
    }
  }
}

}  // namespace
}  // namespace stretto::tasks
