#include "cli/family_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/failure.h"

namespace stretto::cli {
namespace {

const std::vector<FamilyOption> kOptions{{"--src", {"translation"}},
                                         {"--data", {"masked_lm", "text_classification"}},
                                         {"--predictions", {"text_classification"}}};

/// Of a command with these options that was called with `words`.
struct Called {
  explicit Called(std::vector<std::string> words) {
    app.add_option("--src", src);
    app.add_option("--data", data);
    app.add_option("--predictions", predictions);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  CLI::App app;
  std::string src, data, predictions;
};

experiment::Experiment of_task(const std::string& name) {
  experiment::Experiment experiment;
  experiment.task.select(name);
  return experiment;
}

TEST(FamilyOptions, ThoseOfTheFamilyPass) {
  require_own_options(Called({"--src", "a"}).app, kOptions, of_task("translation"));
  require_own_options(Called({"--data", "a", "--predictions", "b"}).app, kOptions,
                      of_task("text_classification"));
  require_own_options(Called({}).app, kOptions, of_task("question_answering"));
}

TEST(FamilyOptions, OthersAreRefusedWithTheFamilyAndItsOwn) {
  const Error error = testing::failure(ExitCode::kUsage, [] {
    require_own_options(Called({"--src", "a"}).app, kOptions, of_task("text_classification"));
  });
  EXPECT_EQ(std::string(error.what()),
            "--src is an option for runs of translation, and this run's task.name is "
            "\"text_classification\"");
  EXPECT_EQ(error.advice(), "its own options are --data, --predictions");
  const Error none = testing::failure(ExitCode::kUsage, [] {
    require_own_options(Called({"--data", "a"}).app, kOptions, of_task("question_answering"));
  });
  EXPECT_EQ(none.advice(), "leave it out");
}

}  // namespace
}  // namespace stretto::cli
