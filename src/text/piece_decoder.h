#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_spec.h"

namespace stretto::text {

/// Puts pieces together again.
class PieceDecoder {
 public:
  explicit PieceDecoder(const TokenizerSpec& spec) : spec_(spec) {}
  void add(std::string_view piece);
  /// Bytes that are not UTF-8 become U+FFFD.
  std::string text() const;

 private:
  void add_marked(std::string_view piece);

  const TokenizerSpec& spec_;
  std::string text_, bytes_;  ///< of kMarks: bytes that stand side by side
  bool is_first_ = true;
};

}  // namespace stretto::text
