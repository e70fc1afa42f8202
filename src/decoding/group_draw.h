#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stretto::decoding {

/// What may be done to probabilities before such a draw: the rules Temperature and TopP
/// (decoding/sampling_rules.h), in this order.
struct GroupDrawRules {
  double temperature = 1;
  double top_p = 1;
};

/// The token that a draw goes to which walks down all tokens from the likeliest on
/// (draw_by_ranks), without putting them in order: one pass over the row sums the masses of groups
/// of tokens of similar probability, and only the tokens of the group that is drawn from are
/// sorted.
///
/// Sums of many numbers are rounded, and the order of their terms decides how. Where all that both
/// ways may be rounded by could make them disagree, and where temperature or row are out of the
/// ordinary, there is no answer.
///
/// @param row      log-probabilities [vocab]; -inf is never drawn
/// @param uniform  in [0, 1)
std::optional<int64_t> draw_by_groups(std::span<const float> row, double uniform,
                                      const GroupDrawRules& rules);

}  // namespace stretto::decoding
