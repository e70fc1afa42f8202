#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/family_distillation.h"

namespace stretto::distill {

struct WordPairOptions {
  int rounds = 5;                  ///< of expectation and maximisation
  int64_t max_lines = 1'000'000;   ///< of all texts, the first ones
  int64_t max_words = 100;         ///< longer lines are left out
  int64_t best = 50;               ///< pairs of a source word that are written, the likeliest
  double min_probability = 0.001;  ///< of a pair that is written
  /// Whether punctuation at the ends of a word is a word of its own: not in text that is in tokens
  /// already, such as "Rie@@ sen" and "&apos;s".
  bool splits_punctuation = true;
};

/// A source word with a word that its labels have, and p(label word | source word).
struct WordPair {
  std::string source, label;
  double probability = 0;
};

/// Which words of the labels stand for which words of the texts: the lexical table of IBM model 1
/// (Brown et al. 1993), with an empty source word. Words stand between spaces. Sorted by source
/// word, then by falling probability, then by label.
///
/// None for labels that seem to be written without spaces.
///
/// The result is a function of the lines. Throws as data::LineReader does.
std::vector<WordPair> find_word_pairs(const std::vector<experiment::LabelledText>& texts,
                                      const WordPairOptions& options = {});

/// The words of a line, as find_word_pairs() sees them.
std::vector<std::string> words_of(std::string_view line, bool splits_punctuation = true);

/// Writes SOURCE<TAB>LABEL<TAB>PROBABILITY lines, the form of a vocabulary shortlist. Throws
/// Error(kIo).
void write_word_pairs(const std::filesystem::path& path, const std::vector<WordPair>& pairs);

}  // namespace stretto::distill
