#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::models {

/// How the tokens of a vocabulary are divided among the softmaxes of an AdaptiveHead
/// (models/heads/adaptive.h), in the order of their ids.
struct AdaptiveOptions {
  /// Ends of all groups but the last: tokens below the first are the shortlist, the others
  /// clusters.
  std::vector<int64_t> cutoffs;
  /// A projection of its own has in cluster i, from 1, rows of width / div_value^i.
  double div_value = 4;

  /// Why a vocabulary of so many tokens cannot be divided so; empty = it can.
  std::string problem(int64_t num_classes) const {
    if (cutoffs.empty()) return "there is no cutoff";
    if (cutoffs.front() < 1) return "the shortlist has no token";
    for (size_t i = 0; i < cutoffs.size(); ++i) {
      const int64_t end = i + 1 < cutoffs.size() ? cutoffs[i + 1] : num_classes;
      if (end < cutoffs[i] + 2) {
        return "from cutoff " + std::to_string(cutoffs[i]) + " to " + std::to_string(end) +
               " there are fewer than two tokens";
      }
    }
    return div_value >= 1 ? "" : "div_value is below 1";
  }
};

}  // namespace stretto::models
