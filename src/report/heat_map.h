#pragma once

#include <cstddef>
#include <string>

#include "report/sample.h"

namespace stretto::report {

inline constexpr size_t kMostDrawnPieces = 48;  ///< each way

/// The attention of a sample as an SVG picture: a row per piece of the output, a column per piece
/// of the input, darker where the model looked. The first kMostDrawnPieces each way are drawn;
/// attention may be given of these alone. "" when the sample has no attention or its rows do not
/// fit the pieces.
/// @param label  the description of the picture for readers who cannot see it
std::string render_attention(const TextPairSample& sample, const std::string& label);

}  // namespace stretto::report
