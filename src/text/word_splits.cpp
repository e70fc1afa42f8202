#include "text/word_splits.h"

#include "text/code_points.h"

namespace stretto::text {
namespace {

CharClass class_at(std::string_view text, size_t at) {
  return class_of(next_code_point(text, at));
}

/// Behind the characters of one class that begin at `at`.
size_t end_of_run(std::string_view text, size_t at, CharClass wanted) {
  while (at < text.size()) {
    size_t next = at;
    if (class_of(next_code_point(text, next)) != wanted) break;
    at = next;
  }
  return at;
}

/// Length of `'s`, `'ll` and the like at the beginning of the text; 0 = none is there.
size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

/// White space that a word follows leaves its last character to that word, or to the next range.
size_t end_of_space(std::string_view text, size_t begin) {
  size_t last = begin, end = begin;
  while (end < text.size() && class_at(text, end) == CharClass::kSpace) {
    last = end;
    next_code_point(text, end);
  }
  return end == text.size() || last == begin ? end : last;
}

}  // namespace

void split_at_punctuation(std::string_view text, std::vector<ByteRange>& words) {
  size_t begin = 0;
  const auto close = [&](size_t end) {
    if (end > begin) words.push_back({begin, end});
  };
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const char32_t c = next_code_point(text, at);
    const bool is_punctuation = is_bert_punctuation(c);
    if (!is_punctuation && !is_white_space(c)) continue;
    close(here);
    if (is_punctuation) words.push_back({here, at});
    begin = at;
  }
  close(text.size());
}

void split_by_class(std::string_view text, std::vector<ByteRange>& words) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    if (text[begin] == '\'') end += contraction(text.substr(begin));
    if (end == begin) {
      size_t first = begin;
      if (text[begin] == ' ' && begin + 1 < text.size() &&
          class_at(text, begin + 1) != CharClass::kSpace) {
        ++first;
      }
      const CharClass kind = class_at(text, first);
      end = kind == CharClass::kSpace ? end_of_space(text, begin) : end_of_run(text, first, kind);
    }
    words.push_back({begin, end});
    begin = end;
  }
}

}  // namespace stretto::text
