#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stretto::report {

/// What samples tell in rows of a label and a text.
using SampleRows = std::vector<std::pair<std::string, std::string>>;

/// Those that a page shows, with long texts cut.
SampleRows trimmed_rows(const SampleRows& rows);

}  // namespace stretto::report
