#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stretto::report {

/// Text that is safe as HTML content and inside a quoted attribute, whatever it holds: `& < > " '`
/// become entities, broken UTF-8 and control characters U+FFFD, and characters that turn the
/// direction of the text around them (U+202A–202E, U+2066–2069) vanish.
std::string escape_html(std::string_view text);

/// escape_html of at most `max_code_points`, with an ellipsis for what is left out.
std::string escape_html(std::string_view text, size_t max_code_points);

/// A TOML document as escaped HTML with `<span class="…">` around sections (`s`), keys (`k`),
/// strings
/// (`v`), numbers and booleans (`n`) and comments (`c`). Never fails: what it cannot tell is plain.
std::string highlight_toml(std::string_view toml);

}  // namespace stretto::report
