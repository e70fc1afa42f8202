#include "text/offsets.h"

#include <algorithm>

namespace stretto::text {

EndSpaces end_spaces(std::string_view piece) {
  constexpr char32_t kSpaceByte = 0x120;  // the space in the alphabet of bytes
  EndSpaces spaces;
  bool only_spaces = true;
  for (size_t at = 0; at < piece.size();) {
    const char32_t c = next_code_point(piece, at);
    if (c == kSpaceByte || is_white_space(c)) {
      spaces.leading += only_spaces ? 1 : 0;
      ++spaces.trailing;
    } else {
      only_spaces = false;
      spaces.trailing = 0;
    }
  }
  return spaces;
}

CodePointSpan trimmed(CodePointSpan span, EndSpaces spaces, bool is_first, bool keeps_one_space) {
  if ((is_first || span.begin == 0) && keeps_one_space && spaces.leading == 1) spaces.leading = 0;
  span.begin = std::min(span.begin + spaces.leading, span.end);
  if (span.end >= spaces.trailing) span.end = std::max(span.end - spaces.trailing, span.begin);
  return span;
}

}  // namespace stretto::text
