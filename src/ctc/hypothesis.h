#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::ctc {

/// A word of a hypothesis and the frames that it takes.
struct CtcWord {
  std::string text;
  int64_t begin_frame = 0;
  int64_t end_frame = 0;  ///< behind the last one
  bool operator==(const CtcWord&) const = default;
};

/// One text that the frames may be.
struct CtcHypothesis {
  std::vector<int64_t> ids;           ///< labels
  std::vector<int64_t> begin_frames;  ///< [ids] where each label most probably begins
  std::vector<CtcWord> words;
  std::string text;         ///< words with a space between
  double score = 0;         ///< all of CtcOptions' sum; what n best are sorted by
  double log_prob = 0;      ///< of the labels, over all alignments (greedy: of the best one)
  double lm_log_prob = 0;   ///< of the language model, natural log, without alpha
  bool is_complete = true;  ///< false: the last word is none of the lexicon
};

}  // namespace stretto::ctc
