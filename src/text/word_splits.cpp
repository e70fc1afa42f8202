#include "text/word_splits.h"

#include <array>

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

std::array<std::string_view, 7> contractions() {
  return {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
}

/// Length of `'s`, `'ll` and the like at the beginning of the text; 0 = none is there.
size_t contraction(std::string_view text) {
  for (const std::string_view ending : contractions()) {
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

bool ends_line(std::string_view text, size_t at) {
  return text[at] == '\r' || text[at] == '\n';
}

char32_t folded(char32_t c) {
  constexpr char32_t kLongS = 0x17F;  // which a pattern without case takes for an s
  return c == kLongS ? U's' : lower(c);
}

/// As contraction(), whatever the case.
size_t contraction_of_any_case(std::string_view text) {
  for (const std::string_view ending : contractions()) {
    size_t at = 1, matched = 1;
    while (matched < ending.size() && at < text.size()) {
      size_t next = at;
      if (folded(next_code_point(text, next)) != static_cast<char32_t>(ending[matched])) break;
      at = next;
      ++matched;
    }
    if (matched == ending.size()) return at;
  }
  return 0;
}

/// White space: up to its last line end; else as end_of_space().
size_t end_of_lines(std::string_view text, size_t begin) {
  size_t end = begin, behind_line = begin;
  while (end < text.size() && class_at(text, end) == CharClass::kSpace) {
    const bool is_line_end = ends_line(text, end);
    next_code_point(text, end);
    if (is_line_end) behind_line = end;
  }
  return behind_line > begin ? behind_line : end_of_space(text, begin);
}

size_t end_of_digits(std::string_view text, size_t begin, int most) {
  size_t end = begin;
  for (int i = 0; i < most && end < text.size(); ++i) {
    size_t next = end;
    if (class_of(next_code_point(text, next)) != CharClass::kNumber) break;
    end = next;
  }
  return end;
}

size_t end_of_line_word(std::string_view text, size_t begin, int most_digits) {
  if (text[begin] == '\'') {
    if (const size_t size = contraction_of_any_case(text.substr(begin))) return begin + size;
  }
  size_t second = begin;
  const CharClass kind = class_of(next_code_point(text, second));
  if (kind == CharClass::kLetter) return end_of_run(text, begin, kind);
  const bool may_lead = kind != CharClass::kNumber && !ends_line(text, begin);
  const bool has_second = second < text.size();
  if (may_lead && has_second && class_at(text, second) == CharClass::kLetter) {
    return end_of_run(text, second, CharClass::kLetter);
  }
  if (kind == CharClass::kNumber) return end_of_digits(text, begin, most_digits);
  const bool leads_others =
      text[begin] == ' ' && has_second && class_at(text, second) == CharClass::kOther;
  if (kind == CharClass::kSpace && !leads_others) return end_of_lines(text, begin);
  size_t end = end_of_run(text, leads_others ? second : begin, CharClass::kOther);
  while (end < text.size() && ends_line(text, end)) ++end;
  return end;
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

void split_by_lines(std::string_view text, int most_digits, std::vector<ByteRange>& words) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of_line_word(text, begin, most_digits);
    words.push_back({begin, end});
    begin = end;
  }
}

}  // namespace stretto::text
