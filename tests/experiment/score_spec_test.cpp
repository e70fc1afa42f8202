#include "experiment/score_spec.h"

#include <gtest/gtest.h>

namespace stretto::experiment {
namespace {

std::vector<ScoreSpec> scores() {
  return {{.style = {.name = "loss"}},
          {.style = {.name = "ppl"}, .ranks = false},
          {.style = {.name = "f1", .higher_is_better = true}, .title = "F1"},
          {.style = {.name = "exact_match"}}};
}

std::vector<std::string> names_of(const std::vector<ScoreSpec>& specs) {
  std::vector<std::string> names;
  for (const auto& spec : specs) names.push_back(spec.name());
  return names;
}

TEST(ScoreSpec, BestGoesByThoseThatRankAndByTheLossLast) {
  EXPECT_EQ(names_of(ranking_scores(scores())),
            (std::vector<std::string>{"f1", "exact_match", "loss"}));
}

TEST(ScoreSpec, AreDrawnInTheirOrderWhetherTheyRankOrNot) {
  const auto styles = styles_of(scores());
  ASSERT_EQ(styles.size(), 4U);
  EXPECT_EQ(styles[1].name, "ppl");
  EXPECT_TRUE(styles[2].higher_is_better);
}

TEST(ScoreSpec, AreCalledByTheirTitleInATextOrByTheirKey) {
  EXPECT_EQ(scores()[2].words(), "F1");
  EXPECT_EQ(scores()[3].words(), "exact_match");
}

}  // namespace
}  // namespace stretto::experiment
