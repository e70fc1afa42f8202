#include "families/text/engine/eval_files.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

using Paths = std::vector<std::string>;

TEST(EvalFiles, AreThoseOfTheCommandThenOfTestThenOfValidation) {
  const Paths asked{"a", "b"}, test{"t"}, valid{"v"};
  const auto given = eval_files(asked, test, valid);
  EXPECT_EQ(given.name, "a,b");
  EXPECT_EQ(given.key, "--data");
  EXPECT_EQ(given.paths, asked);
  const auto of_test = eval_files({}, test, valid), of_valid = eval_files({}, {}, valid);
  EXPECT_EQ(of_test.name, "test");
  EXPECT_EQ(of_test.paths, test);
  EXPECT_EQ(of_valid.key, "data.valid");
  EXPECT_EQ(of_valid.paths, valid);
}

TEST(EvalFiles, AreAskedForWhereThereAreNone) {
  const Error error =
      stretto::testing::failure(ExitCode::kUsage, [] { eval_files({}, {}, {}, "give some"); });
  EXPECT_EQ(error.advice(), "give some");
}

}  // namespace
}  // namespace stretto::tasks
