#include "tasks/registry.h"

#include <gtest/gtest.h>

#include <set>

#include "experiment/experiment_schema.h"
#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

TEST(Families, EachNameThatTheConfigurationTakesHasAFamilyOfItsOwn) {
  experiment::Experiment experiment;
  const auto schema = experiment::experiment_schema(experiment);
  const auto names = schema.find("task.name")->range.choices;
  std::set<const Family*> families;
  for (const auto& name : names) {
    experiment.task.name = name;
    families.insert(&family_of(experiment));
  }
  EXPECT_FALSE(names.empty());
  EXPECT_EQ(families.size(), names.size());
}

TEST(Families, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  experiment::Experiment experiment;
  experiment.task.name = "origami";
  const Error error = testing::failure(ExitCode::kUsage, [&] { family_of(experiment); });
  EXPECT_NE(std::string(error.what()).find("`origami`"), std::string::npos) << error.what();
  EXPECT_NE(error.advice().find("translation"), std::string::npos) << error.advice();
}

}  // namespace
}  // namespace stretto::tasks
