#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

/// How words were split into sub-words before the text came to us, told by the mark that their
/// pieces carry. Pieces stand apart by single spaces.
enum class Subwords : uint8_t {
  kNone,           ///< nothing is marked: the tokens are what people read
  kBpe,            ///< subword-nmt: `hou@@ se`, every piece but the last of a word ends in `@@`
  kSentencePiece,  ///< `▁hou se`: a piece that begins a word begins with `▁` (U+2581)
  kWordPiece,      ///< BERT: `hou ##se`, every piece but the first of a word begins with `##`
};

/// `▁`, which begins a word in pieces of SentencePiece.
inline constexpr std::string_view kWordStart = "\xE2\x96\x81";

/// "none", "bpe", "sentencepiece", "wordpiece".
std::vector<std::string> subwords_names();
const char* name_of(Subwords subwords);
/// `name` must be one of subwords_names(), else std::invalid_argument.
Subwords subwords_named(std::string_view name);

/// The line as people read it: `hou@@ se` and `▁hou se` and `hou ##se` become `house`. A word that
/// the end of the line cuts off stays as it is, without its mark.
std::string join_subwords(std::string_view line, Subwords subwords);

/// What the tokens of a vocabulary, or of a text, are marked with: the mark that at least one in
/// twenty carries, the most frequent of them; kNone when there is no such mark.
Subwords find_subwords(std::span<const std::string> tokens);

}  // namespace stretto::text
