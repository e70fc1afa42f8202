#pragma once

#include <string_view>

#include "text/bert_normalizer.h"
#include "text/tokenizer_spec.h"

/// SentencePiece's spaces: in pieces and in text that is cut into them, U+2581 stands for U+0020.
namespace stretto::text {

/// Text with marks for spaces, and one in front of it as `prefix` says.
/// @param text      well-formed UTF-8, not empty
/// @param is_first  whether it is the beginning of a line
/// @param out       cleared first; the mark in front counts as the first character
void mark_spaces(std::string_view text, TokenizerSpec::SpacePrefix prefix, bool is_first,
                 bool with_origin, NormalizedText& out);

/// Text in Unicode's form C (canonical composition), of the characters of Unicode 9. A character
/// that was composed counts as the first of those that it replaces.
void compose(std::string_view text, bool with_origin, NormalizedText& out);

}  // namespace stretto::text
