#pragma once

#include <string>
#include <vector>

#include "data/lines.h"

namespace stretto::cli {

/// Opens text as `[data]` does (plain, .gz, .zst, FILE.zip:MEMBER); "" or "-" is stdin.
/// Throws Error(kUsage) for a missing file; reading throws Error(kBadData) for a NUL byte or a line
/// of 1 MB.
data::LineReader open_lines(const std::string& path);

/// All lines of such a text. Throws Error(kBadData) too when they are more than memory should hold:
/// 16,777,216 lines, or 4 GiB.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace stretto::cli
