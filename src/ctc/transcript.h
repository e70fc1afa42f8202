#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctc/ctc_labels.h"
#include "ctc/hypothesis.h"

namespace stretto::ctc {

/// A label of a hypothesis, the frames that it takes, and the word that ends with it.
struct SpokenLabel {
  int64_t label = 0;
  int64_t begin_frame = 0;
  int64_t end_frame = 0;  ///< behind the last one
  /// A lexicon's word whose labels end in front of this one (or with it, of a separator); empty
  /// = none.
  std::string_view ended_word = {};
};

/// Words of labels, with their frames, and the text.
///
/// @param lexicon_words  words are those that `ended_word` and `last_word` tell, and labels behind
///                       the last of them an unfinished one; else labels spell words between
///                       separators and marks
/// @param last_word      the lexicon's word that ends behind the last label; empty = none
/// @param whole_words    leaves out labels behind the last end of a word
CtcHypothesis transcript(const CtcLabels& labels, std::vector<SpokenLabel> spoken,
                         bool lexicon_words, std::string_view last_word, bool whole_words);

}  // namespace stretto::ctc
