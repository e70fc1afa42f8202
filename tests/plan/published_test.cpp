#include "plan/published.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/file.h"

namespace stretto::plan {
namespace {

TEST(PublishedCases, AreMetWithinTheErrorThatTheManualStates) {
  const auto cases = published_cases();
  ASSERT_EQ(cases.size(), 5u);
  const double allowed[] = {0.25, 0.05, 0.11, 0.12, 0.03};
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_LE(std::abs(cases[i].error()), allowed[i]) << cases[i].what << cases[i].predicted;
  }
}

TEST(PublishedCases, TheTableInTheManualIsFresh) {
  const auto page = read_file(std::string(STRETTO_SOURCE_DIR) + "/docs/scaling.md");
  EXPECT_NE(page.find(published_table()), std::string::npos)
      << "docs/scaling.md is stale: stretto plan --published prints\n"
      << published_table();
}

TEST(PublishedCases, OverlapIsWorthWhatThePaperSaysWithinAFewPerCent) {
  auto setup = published_cases()[1].setup;
  const double with = predict(setup, 128).step_seconds;
  setup.overlap = false;
  EXPECT_NEAR(predict(setup, 128).step_seconds / with, 44.7 / 38.6, 0.05);
}

}  // namespace
}  // namespace stretto::plan
