#pragma once

#include <cstdint>
#include <span>

namespace stretto::metrics {

/// Edits that turn `hypothesis` into `reference`: insertions, deletions, substitutions and shifts
/// of a block of words, one each (Snover et al. 2006). Finding the fewest is NP-hard; this is
/// tercom's greedy search: while some shift lowers the word edit distance, make the one that lowers
/// it most. Limits are tercom's and sacreBLEU's: beam width 25 around the diagonal, blocks of at
/// most 10 words, moved by at most 50 positions, 1,000 candidates for each pair. An empty reference
/// costs a deletion for each word.
///
/// @param hypothesis, reference  words as numbers; equal words have equal numbers
/// Throws Error(kBadData) when both are so long (some 8,000 words) that the table would not fit
/// memory.
int64_t translation_edits(std::span<const uint32_t> hypothesis,
                          std::span<const uint32_t> reference);

}  // namespace stretto::metrics
