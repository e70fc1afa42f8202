#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiment/task_rules.h"
#include "train/task.h"

namespace stretto::tasks {

/// Expects that each of some numbers of a task is in its family's list, without which nobody knows
/// which way is better. Header of tests alone.
inline void expect_listed(const std::vector<train::Score>& given,
                          const experiment::Experiment& experiment) {
  const auto listed = experiment::find_task_rules(experiment)->scores(experiment);
  for (const auto& score : given) {
    EXPECT_EQ(std::ranges::count(listed, score.name, &experiment::ScoreSpec::name), 1)
        << score.name << " is not in the list of scores";
  }
}

/// The same of a validation, which also has a finite number for each score that ranks runs.
inline void expect_listed(const train::Validation& validation,
                          const experiment::Experiment& experiment) {
  expect_listed(validation.scores, experiment);
  const auto scores = experiment::find_task_rules(experiment)->scores(experiment);
  for (const auto& spec : experiment::ranking_scores(scores)) {
    const auto* score = train::find_score(validation.scores, spec.name());
    ASSERT_NE(score, nullptr) << spec.name();
    EXPECT_TRUE(std::isfinite(score->value)) << spec.name();
  }
}

}  // namespace stretto::tasks
