#include "metrics/answer_words.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>

#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

/// Whether normalisation drops a character.
bool is_dropped(char32_t c, AnswerSplit split) {
  return is_ascii_punctuation(c) || (split != AnswerSplit::kSpace && is_punctuation(c));
}

/// `\w` of Python's `re`, without the underscore, which is punctuation: str.isalnum().
bool is_alphanumeric(char32_t c) {
  const auto code = static_cast<UChar32>(c);
  return (U_GET_GC_MASK(code) & U_GC_L_MASK) != 0 ||
         u_getIntPropertyValue(code, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_article(std::u32string_view word) {
  return word == U"a" || word == U"an" || word == U"the";
}

/// Puts a space in the place of each article.
std::u32string without_articles(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_alphanumeric(text[end])) ++end;
    if (is_article(text.substr(i, end - i))) {
      out += U' ';
      i = end;
      continue;
    }
    end = std::max(end, i + 1);
    out += text.substr(i, end - i);
    i = end;
  }
  return out;
}

/// Whether a character is a word on its own.
bool stands_alone(char32_t c, AnswerSplit split) {
  if (split == AnswerSplit::kMlqaZh) return c >= 0x4E00 && c <= 0x9FA5;
  const auto code = static_cast<UChar32>(c);
  return uscript_hasScript(code, USCRIPT_HAN) != 0 ||
         uscript_hasScript(code, USCRIPT_HIRAGANA) != 0 ||
         uscript_hasScript(code, USCRIPT_KATAKANA) != 0;
}

/// Puts spaces around each character that is a word.
std::u32string with_characters_apart(std::u32string_view text, AnswerSplit split) {
  std::u32string out;
  out.reserve(text.size() * 3);
  for (const char32_t c : text) {
    const bool alone = stands_alone(c, split);
    if (alone) out += U' ';
    out += c;
    if (alone) out += U' ';
  }
  return out;
}

}  // namespace

std::vector<std::u32string> answer_words(std::string_view text, AnswerSplit split) {
  std::u32string plain = lower(decode_utf8(text));
  std::erase_if(plain, [split](char32_t c) { return is_dropped(c, split); });
  return split_words(split == AnswerSplit::kSpace ? without_articles(plain)
                                                  : with_characters_apart(plain, split));
}

}  // namespace stretto::metrics
