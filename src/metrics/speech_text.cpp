#include "metrics/speech_text.h"

#include <algorithm>
#include <utility>

#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

/// In this order, each in the whole text.
constexpr std::pair<std::u32string_view, std::u32string_view> kContractions[] = {
    {U"won't", U"will not"}, {U"can't", U"can not"}, {U"let's", U"let us"}, {U"n't", U" not"},
    {U"'re", U" are"},       {U"'s", U" is"},        {U"'d", U" would"},    {U"'ll", U" will"},
    {U"'t", U" not"},        {U"'ve", U" have"},     {U"'m", U" am"},
};

std::u32string replaced(std::u32string_view text, std::u32string_view what,
                        std::u32string_view by) {
  std::u32string out;
  size_t at = 0;
  for (size_t found; (found = text.find(what, at)) != text.npos; at = found + what.size()) {
    out.append(text, at, found - at).append(by);
  }
  return out.append(text, at);
}

/// Without what stands from a `<` or `[` to the next `>` or `]`, whichever they are.
std::u32string without_marks(std::u32string_view text) {
  std::u32string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t opening = text.find_first_of(U"<[", at);
    const size_t closing = opening == text.npos ? opening : text.find_first_of(U">]", opening + 1);
    if (closing == text.npos) break;
    out.append(text, at, opening - at);
    at = closing + 1;
  }
  return out.append(text, at);
}

std::u32string_view stripped(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Python's re.sub(r"\s\s+", " ", text)
std::u32string with_single_spaces(std::u32string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_space(text[end])) ++end;
    if (end - at >= 2) {
      out.push_back(U' ');
      at = end;
    } else {
      out.push_back(text[at++]);
    }
  }
  return out;
}

}  // namespace

std::u32string keep_transcript(std::u32string text) {
  return text;
}

std::u32string standardize_transcript(std::u32string text) {
  text = lower(text);
  for (const auto& [contraction, words] : kContractions) text = replaced(text, contraction, words);
  text = without_marks(text);
  for (char32_t& c : text) {
    if (c >= 0x09 && c <= 0x0D) c = U' ';
  }
  return with_single_spaces(text);
}

std::vector<std::u32string> words_of_transcript(std::u32string_view text) {
  const std::u32string single = with_single_spaces(text);
  std::vector<std::u32string> words;
  std::u32string_view rest = stripped(single);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(U' '), rest.size());
    if (end > 0) words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

std::vector<std::u32string> characters_of_transcript(std::u32string_view text) {
  std::vector<std::u32string> characters;
  for (const char32_t c : stripped(text)) characters.emplace_back(1, c);
  return characters;
}

}  // namespace stretto::metrics
