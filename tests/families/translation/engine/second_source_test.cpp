#include "families/translation/engine/second_source.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "families/translation/translation_options.h"
#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

TEST(SecondSource, ALineIsCutAtItsFirstTab) {
  EXPECT_EQ(joined_line("a b\tc\td").text, "a b\tc d");
  EXPECT_EQ(joined_line("a b\tc\td").problem, "");
}

TEST(SecondSource, TwoLinesAreJoinedByOneTab) {
  EXPECT_EQ(joined_line("a\tb", "c").text, "a b\tc");
}

TEST(SecondSource, ALineWithoutATabIsAProblem) {
  const JoinedLine line = joined_line("a b");
  EXPECT_EQ(line.text, "");
  EXPECT_NE(line.problem.find("FIRST<TAB>SECOND"), std::string::npos) << line.problem;
}

TEST(SecondSource, OneEmptySourceIsAProblemAndTwoAreNone) {
  EXPECT_NE(joined_line("\tb").problem.find("first source is empty"), std::string::npos);
  EXPECT_NE(joined_line("a", " ").problem.find("second source is empty"), std::string::npos);
  for (const JoinedLine& line :
       {joined_line(""), joined_line(" \t "), joined_line(std::string(), std::string())}) {
    EXPECT_EQ(line.text, "");
    EXPECT_EQ(line.problem, "");
  }
}

TEST(SecondSource, IsRefusedByARunThatReadsOne) {
  experiment::Experiment one, two;
  translation_of(two).model.encoders.resize(2);
  testing::failure(ExitCode::kUsage, [&] { require_second_source(one, "b.txt"); });
  require_second_source(one, "");
  require_second_source(two, "b.txt");
}

}  // namespace
}  // namespace stretto::tasks
