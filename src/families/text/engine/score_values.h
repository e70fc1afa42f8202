#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "families/text/score_keys.h"
#include "train/task.h"

namespace stretto::tasks {

/// Adds the values of nll_score() and of ppl_score().
/// @param before  the start of their keys, "de." for a part of a model
inline void add_nll_scores(double nll, std::vector<train::Score>& scores,
                           const std::string& before = "") {
  scores.push_back({.name = before + score_key::kNll, .value = nll});
  scores.push_back({.name = before + score_key::kPpl, .value = std::exp(nll)});
}

}  // namespace stretto::tasks
