#pragma once

#include <cstdint>
#include <string_view>

#include "text/code_points.h"
#include "text/tokenizer.h"

namespace stretto::text {

/// Code points before a byte of a line. Cheap where the bytes are asked for in their order.
class CodePointCounter {
 public:
  explicit CodePointCounter(std::string_view line) : line_(line) {}

  int64_t before(size_t byte) {
    for (; byte_ < byte; ++byte_) count_ += continues_code_point(line_[byte_]) ? 0 : 1;
    for (; byte_ > byte; --byte_) count_ -= continues_code_point(line_[byte_ - 1]) ? 0 : 1;
    return count_;
  }

 private:
  std::string_view line_;
  size_t byte_ = 0;
  int64_t count_ = 0;
};

/// Spaces at the ends of a piece, as trim_offsets counts them.
struct EndSpaces {
  int64_t leading = 0, trailing = 0;
};

EndSpaces end_spaces(std::string_view piece);

/// @param is_first        whether the piece is the first one, or begins with the line
/// @param keeps_one_space  whether one leading space of that piece counts as added
CodePointSpan trimmed(CodePointSpan span, EndSpaces spaces, bool is_first, bool keeps_one_space);

}  // namespace stretto::text
