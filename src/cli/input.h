#pragma once

#include <cstddef>
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

/// The whole content of such a text, which may be of any kind. Throws Error(kBadData) for more than
/// `max_bytes`.
std::string read_text(const std::string& path, size_t max_bytes);

/// The words behind a run folder of `infer` and `embed`.
struct WordsOfLines {
  std::vector<std::string> overrides;
  std::vector<std::string> files;  ///< whose lines are read; "-" is stdin, as are none
};
/// Throws Error(kUsage) for a file that is not there.
WordsOfLines words_of_lines(const std::vector<std::string>& words);

/// What messages call such a text: its path, or stdin.
std::string input_name(const std::string& path);

}  // namespace stretto::cli
