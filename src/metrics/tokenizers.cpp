#include "metrics/tokenizers.h"

#include <unicode/uchar.h>

#include <string_view>

#include "metrics/text_units.h"

namespace stretto::metrics {
namespace {

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  size_t at = text.find(from);
  if (at == std::u32string::npos) return;
  std::u32string out;
  size_t copied = 0;
  for (; at != std::u32string::npos; at = text.find(from, copied)) {
    out.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  text = out.append(text, copied);
}

bool is_digit(char32_t c) {
  return c >= U'0' && c <= U'9';
}
bool is_stop(char32_t c) {
  return c == U'.' || c == U',';
}

/// ASCII punctuation but the apostrophe, hyphen, full stop and comma; the space belongs to the
/// range.
bool is_13a_symbol(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
         (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

bool in_category(char32_t c, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}
bool is_number(char32_t c) {
  return in_category(c, U_GC_N_MASK);
}
bool is_symbol(char32_t c) {
  return in_category(c, U_GC_S_MASK);
}

/// Regular-expression substitution of a pair of characters, "(first)(second)" -> `expansion`: scans
/// left to right and goes on behind the pair, so that a character takes part in one match only. The
/// rules depend on that: ",," after a letter is parted by the first rule once, not twice.
template <typename First, typename Second, typename Expand>
std::u32string substitute_pairs(std::u32string_view text, First first, Second second,
                                Expand expand) {
  std::u32string out;
  out.reserve(text.size() + text.size() / 4);
  size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      expand(out, text[i], text[i + 1]);
      i += 2;
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

/// "\1 \2 "
void part_second(std::u32string& out, char32_t first, char32_t second) {
  out.append({first, U' ', second, U' '});
}

/// " \1 \2"
void part_first(std::u32string& out, char32_t first, char32_t second) {
  out.append({U' ', first, U' ', second});
}

template <typename Predicate>
std::u32string space_around(std::u32string_view text, Predicate matches) {
  std::u32string out;
  out.reserve(text.size() + text.size() / 4);
  for (char32_t c : text) {
    if (matches(c)) {
      out.append({U' ', c, U' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

std::u32string tokenize_13a(std::u32string line) {
  replace_all(line, U"<skipped>", U"");
  replace_all(line, U"-\n", U"");
  replace_all(line, U"\n", U" ");
  replace_all(line, U"&quot;", U"\"");
  replace_all(line, U"&amp;", U"&");
  replace_all(line, U"&lt;", U"<");
  replace_all(line, U"&gt;", U">");
  line = space_around(U" " + line + U" ", is_13a_symbol);
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  const auto is_dash = [](char32_t c) { return c == U'-'; };
  line = substitute_pairs(line, no_digit, is_stop, part_second);
  line = substitute_pairs(line, is_stop, no_digit, part_first);
  return substitute_pairs(line, is_digit, is_dash, part_second);
}

std::u32string tokenize_intl(std::u32string line) {
  const auto no_number = [](char32_t c) { return !is_number(c); };
  line = substitute_pairs(line, no_number, is_punctuation, part_second);
  line = substitute_pairs(line, is_punctuation, no_number, part_first);
  return space_around(line, is_symbol);
}

std::u32string tokenize_none(std::u32string line) {
  return line;
}

std::u32string tokenize_char(std::u32string line) {
  return space_around(line, [](char32_t) { return true; });
}

}  // namespace stretto::metrics
