#pragma once

#include <cstdint>
#include <vector>

#include "ctc/decoder_parts.h"
#include "ctc/hypothesis.h"
#include "ctc/transcript.h"

namespace stretto::ctc {

/// The most probable class of each frame, the first of several; repeats of a label are one, unless
/// a blank stands between them.
class Greedy {
 public:
  explicit Greedy(const DecoderParts& parts) : parts_(parts) {}

  void push(const float* log_probs);  ///< [L + 1]
  int64_t num_frames() const { return num_frames_; }
  /// @param whole_words  without the word that is under way
  CtcHypothesis hypothesis(bool whole_words) const;

 private:
  const DecoderParts& parts_;
  std::vector<SpokenLabel> spoken_;
  int64_t num_frames_ = 0;
  int64_t last_class_ = -1;
  double log_prob_ = 0;
};

}  // namespace stretto::ctc
