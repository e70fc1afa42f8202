#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"

namespace stretto::testing {

/// Random log-probabilities [T, classes] that sum to 1 in each frame.
/// @param sharpness  0 = all alike; the larger, the surer
inline std::vector<float> random_frames(uint64_t seed, int64_t frames, int64_t classes,
                                        double sharpness) {
  RandomStream random(mix64(seed, 5));
  std::vector<float> made;
  for (int64_t t = 0; t < frames; ++t) {
    std::vector<double> scores;
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      scores.push_back(sharpness * random.uniform());
      sum += std::exp(scores.back());
    }
    for (const double score : scores) made.push_back(static_cast<float>(score - std::log(sum)));
  }
  return made;
}

/// Frames that are sure of a class each.
inline std::vector<float> sure_frames(const std::vector<int64_t>& classes_of, int64_t classes,
                                      double other = 1e-3) {
  std::vector<float> made;
  for (const int64_t sure : classes_of) {
    for (int64_t c = 0; c < classes; ++c) {
      const double rest = other * static_cast<double>(classes - 1);
      made.push_back(static_cast<float>(std::log(c == sure ? 1 - rest : other)));
    }
  }
  return made;
}

/// Log-probabilities of all label sequences, from all alignments one by one. For few frames.
inline std::map<std::vector<int64_t>, double> all_label_sequences(const std::vector<float>& frames,
                                                                  int64_t classes) {
  const int64_t length = static_cast<int64_t>(frames.size()) / classes;
  std::map<std::vector<int64_t>, double> probs;
  std::vector<int64_t> alignment(static_cast<size_t>(length), 0);
  for (;;) {
    double log_prob = 0;
    std::vector<int64_t> labels;
    int64_t before = -1;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t c = alignment[static_cast<size_t>(t)];
      log_prob += double{frames[static_cast<size_t>(t * classes + c)]};
      if (c != before && c != classes - 1) labels.push_back(c);
      before = c;
    }
    probs[labels] += std::exp(log_prob);
    int64_t t = 0;
    while (t < length && ++alignment[static_cast<size_t>(t)] == classes)
      alignment[static_cast<size_t>(t++)] = 0;
    if (t == length) break;
  }
  for (auto& [labels, prob] : probs) prob = std::log(prob);
  return probs;
}

}  // namespace stretto::testing
