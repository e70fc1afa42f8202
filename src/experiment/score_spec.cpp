#include "experiment/score_spec.h"

#include <algorithm>

namespace stretto::experiment {

std::vector<ScoreSpec> ranking_scores(const std::vector<ScoreSpec>& scores) {
  std::vector<ScoreSpec> ranking;
  for (const auto& score : scores) {
    if (score.ranks) ranking.push_back(score);
  }
  std::stable_partition(ranking.begin(), ranking.end(),
                        [](const ScoreSpec& score) { return score.name() != "loss"; });
  return ranking;
}

std::vector<report::NumberStyle> styles_of(const std::vector<ScoreSpec>& scores) {
  std::vector<report::NumberStyle> styles;
  for (const auto& score : scores) styles.push_back(score.style);
  return styles;
}

}  // namespace stretto::experiment
