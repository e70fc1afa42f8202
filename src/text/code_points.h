#pragma once

#include <unicode/utf8.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Characters as the tokenizers of BERT and GPT-2 classify them.
///
/// A vocabulary was made with the Unicode tables of its time, and other tables would cut text into
/// other pieces. The reference (Hugging Face's `tokenizers` 0.23) has Unicode 8 for BERT's
/// categories, 9 for decompositions, 16 for GPT-2's pattern and 17 for lower case. ICU gives the
/// properties here, limited to characters of that age.
namespace stretto::text {

/// U+FEFF in UTF-8, which some editors write in front of a file.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The code point at byte `at` of well-formed UTF-8; moves `at` behind it.
inline char32_t next_code_point(std::string_view text, size_t& at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  UChar32 c;
  U8_NEXT_UNSAFE(bytes, at, c);
  return static_cast<char32_t>(c);
}

/// Whether the byte goes on with a code point that began before it.
inline bool continues_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

void append_utf8(std::string& text, char32_t c);

/// What replaces bytes that are not UTF-8: one U+FFFD for each, as SentencePiece does, or for each
/// ill-formed sequence.
enum class Repair : uint8_t { kEachByte, kEachSequence };
std::string repaired_utf8(std::string_view text, Repair repair);

/// For each byte of any text, and for its end, the number of code points before it. A byte that is
/// not UTF-8 counts as one.
std::vector<int64_t> code_points_before(std::string_view text);

/// The property White_Space.
bool is_white_space(char32_t c);
/// What BERT's cleaning removes: NUL, U+FFFD, and categories Cc, Cf and Co but tab and line ends.
bool is_bert_control(char32_t c);
/// ASCII's punctuation and symbols, and categories P*.
bool is_bert_punctuation(char32_t c);
/// What BERT puts spaces around: ideographs, no kana and no hangul.
bool is_bert_ideograph(char32_t c);
/// Category Mn, which strip_accents removes.
bool is_nonspacing_mark(char32_t c);
/// `\w`: letters, marks, decimal digits, connectors.
bool is_word_character(char32_t c);

enum class CharClass : uint8_t { kSpace, kLetter, kNumber, kOther };
/// `\s`, `\p{L}`, `\p{N}`, and the rest.
CharClass class_of(char32_t c);

/// Lower case without context. U+0130 becomes `i` and U+0307, of which this is the first.
char32_t lower(char32_t c);

/// Canonical combining class.
uint8_t combining_class(char32_t c);
/// Full canonical decomposition: at most 4 code points, of which it returns the number.
int decompose(char32_t c, char32_t (&parts)[4]);

}  // namespace stretto::text
