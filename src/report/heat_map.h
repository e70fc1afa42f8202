#pragma once

#include <cstddef>
#include <string>

#include "report/html_report.h"

namespace stretto::report {

inline constexpr size_t kMostDrawnPieces = 48;  ///< each way

/// The attention of a translation as an SVG picture: a row per piece of the translation, a column
/// per piece of the source, darker where the model looked. The first kMostDrawnPieces each way are
/// drawn; attention may be given of these alone. "" when the sample has no attention or its rows do
/// not fit the pieces.
std::string render_attention(const ReportSample& sample);

}  // namespace stretto::report
