#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stretto::metrics {

/// What became of a word, or of a character.
enum class Edit : uint8_t { kHit, kSubstitution, kDeletion, kInsertion };

/// A place of an alignment.
struct AlignedPair {
  Edit edit = Edit::kHit;
  int64_t reference = -1;   ///< place of the word in the reference; -1 of an insertion
  int64_t hypothesis = -1;  ///< place in the hypothesis; -1 of a deletion

  bool operator==(const AlignedPair&) const = default;
};

/// The alignment that count_edits() counts (metrics/edit_counts.h), from beginning to end. Memory
/// is a byte for each pair of words between what both begin and end with.
///
/// @param reference, hypothesis  words as numbers; equal words have equal numbers
/// Throws Error(kBadData) when both are so long (some 16,000 words that differ) that the table
/// would have more than 256 MiB.
std::vector<AlignedPair> align_edits(std::span<const uint32_t> reference,
                                     std::span<const uint32_t> hypothesis);

}  // namespace stretto::metrics
