#pragma once

#include <string>

#include "report/html_report.h"

namespace stretto::report {

/// The attention of a translation as an SVG picture: a row per piece of the translation, a column
/// per piece of the source, darker where the model looked. At most 48 pieces each way are drawn. ""
/// when the sample has no attention or its rows do not fit the pieces.
std::string render_attention(const ReportSample& sample);

}  // namespace stretto::report
