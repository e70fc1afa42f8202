#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stretto::report {

/// The text with each byte that is no part of well-formed UTF-8 replaced by U+FFFD. What people
/// look at may hold anything that was in the corpus, and JSON and HTML must stay readable all the
/// same.
std::string valid_utf8(std::string_view text);

/// Number of code points of well-formed UTF-8; the columns of text without wide characters.
size_t count_code_points(std::string_view text);

/// The first `max_code_points` of well-formed UTF-8, with "…" in the place of the last one when
/// something was left out. "" when `max_code_points` is 0.
std::string ellipsis(std::string_view text, size_t max_code_points);

/// ellipsis() of valid_utf8(): what a page or a file keeps of a text of others.
std::string cut_text(std::string_view text, size_t max_code_points);

}  // namespace stretto::report
