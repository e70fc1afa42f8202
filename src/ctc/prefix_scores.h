#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::ctc {

/// How well the frames of an utterance go with what a text begins with (Watanabe et al. 2017,
/// doi:10.1109/JSTSP.2017.2763455, algorithm 2): for a search that another model leads.
///
/// With p(y) the probability that CTC gives to labels y, summed over all alignments,
///
///     prefix(g) = log of the sum of p(y) over all y that begin with g,  prefix() = 0
class PrefixScores {
 public:
  /// What is known of a prefix: alignments of the first t frames, natural logs.
  struct State {
    std::vector<double> ends_with_label, ends_with_blank;  ///< [T + 1]
    int64_t last = -1;                                     ///< label of the prefix
    double prefix = 0;
  };

  /// @param log_probs   [T, num_classes], natural logs; the last class is the blank. T may be 0
  PrefixScores(std::span<const float> log_probs, int64_t num_classes);

  State start() const;
  State extended(const State& state, int64_t label) const;
  /// gains [num_classes]: of each label prefix(g label) - prefix(g); of the last class log p(g) -
  /// prefix(g), for a text that ends here. What the frames exclude gains kImpossible.
  void gains(const State& state, std::span<double> gains) const;

  static constexpr double kImpossible = -1e5;

 private:
  double log_prob(int64_t frame, int64_t label) const {
    return log_probs_[static_cast<size_t>(frame * num_classes_ + label)];
  }

  int64_t num_classes_, num_frames_;
  std::vector<double> log_probs_, probs_;  ///< [T, num_classes]
};

}  // namespace stretto::ctc
