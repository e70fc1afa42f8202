#pragma once

#include <string>
#include <vector>

namespace stretto::experiment {

/// Words that translate each other.
struct WordPair {
  std::string src, tgt;
  double probability = 1;
};

/// The pairs of `decode.shortlist`. Each line is SOURCE TARGET [PROBABILITY], parted by spaces or
/// tabs; empty lines are skipped. Files may be compressed, as those of `[data]`.
///
/// Throws as data::LineReader does, and Error(kBadData), with file and line, for a line of another
/// form, and for a file without a pair.
std::vector<WordPair> read_word_pairs(const std::string& path);

}  // namespace stretto::experiment
