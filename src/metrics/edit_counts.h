#pragma once

#include <cstdint>
#include <span>

namespace stretto::metrics {

/// How a sequence of words, or of characters, differs from its reference.
struct EditCounts {
  int64_t hits = 0;  ///< that are right, in their order
  int64_t substitutions = 0;
  int64_t deletions = 0;   ///< of the reference, which the hypothesis lacks
  int64_t insertions = 0;  ///< of the hypothesis, which the reference lacks

  int64_t errors() const { return substitutions + deletions + insertions; }
  bool operator==(const EditCounts&) const = default;
};

/// The alignment with the fewest errors (Levenshtein 1966). Where several have as few, it is the
/// one of rapidfuzz, on which jiwer builds: what both begin and end with is right; and in what is
/// left, from the end on, a deletion is preferred to an insertion, and both to a pair.
///
/// Takes time for each pair of words, and memory for the words of the hypothesis.
///
/// @param reference, hypothesis  words as numbers; equal words have equal numbers
/// Throws Error(kBadData) when both are so long (some 90,000 words that differ) that it would take
/// half a minute.
EditCounts count_edits(std::span<const uint32_t> reference, std::span<const uint32_t> hypothesis);

}  // namespace stretto::metrics
