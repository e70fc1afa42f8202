#include "text/code_points.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace stretto::text {
namespace {

constexpr int kBertUnicode = 8, kDecompositionUnicode = 9, kPatternUnicode = 16;

UChar32 as_icu(char32_t c) {
  return static_cast<UChar32>(c);
}

bool is_of(char32_t c, int unicode) {
  UVersionInfo age;
  u_charAge(as_icu(c), age);
  return age[0] <= unicode;
}

uint32_t category(char32_t c) {
  return U_GET_GC_MASK(as_icu(c));
}

/// What ICU 72 (Unicode 15.0) does not know of Unicode 16.
struct NewerRange {
  char32_t first, last;
  char kind;  ///< L letter, N number, M another character of `\w`
};
constexpr NewerRange kNewer[] = {
    {0x897, 0x897, 'M'},     {0x1C89, 0x1C8A, 'L'},   {0xA7CB, 0xA7CD, 'L'},
    {0xA7DA, 0xA7DC, 'L'},   {0x105C0, 0x105F3, 'L'}, {0x10D40, 0x10D49, 'N'},
    {0x10D4A, 0x10D65, 'L'}, {0x10D69, 0x10D6D, 'M'}, {0x10D6F, 0x10D85, 'L'},
    {0x10EC2, 0x10EC4, 'L'}, {0x10EFC, 0x10EFC, 'M'}, {0x11380, 0x11389, 'L'},
    {0x1138B, 0x1138B, 'L'}, {0x1138E, 0x1138E, 'L'}, {0x11390, 0x113B5, 'L'},
    {0x113B7, 0x113B7, 'L'}, {0x113B8, 0x113C0, 'M'}, {0x113C2, 0x113C2, 'M'},
    {0x113C5, 0x113C5, 'M'}, {0x113C7, 0x113CA, 'M'}, {0x113CC, 0x113D0, 'M'},
    {0x113D1, 0x113D1, 'L'}, {0x113D2, 0x113D2, 'M'}, {0x113D3, 0x113D3, 'L'},
    {0x113E1, 0x113E2, 'M'}, {0x116D0, 0x116E3, 'N'}, {0x11BC0, 0x11BE0, 'L'},
    {0x11BF0, 0x11BF9, 'N'}, {0x11F5A, 0x11F5A, 'M'}, {0x13460, 0x143FA, 'L'},
    {0x16100, 0x1611D, 'L'}, {0x1611E, 0x1612F, 'M'}, {0x16130, 0x16139, 'N'},
    {0x16D40, 0x16D6C, 'L'}, {0x16D70, 0x16D79, 'N'}, {0x18CFF, 0x18CFF, 'L'},
    {0x1CCF0, 0x1CCF9, 'N'}, {0x1E5D0, 0x1E5ED, 'L'}, {0x1E5EE, 0x1E5EF, 'M'},
    {0x1E5F0, 0x1E5F0, 'L'}, {0x1E5F1, 0x1E5FA, 'N'}, {0x2EBF0, 0x2EE5D, 'L'}};

/// 0 for a character that is in no range.
char newer_kind(char32_t c) {
  const auto* found = std::upper_bound(std::begin(kNewer), std::end(kNewer), c,
                                       [](char32_t v, const NewerRange& r) { return v < r.first; });
  if (found == std::begin(kNewer)) return 0;
  --found;
  return c <= found->last ? found->kind : 0;
}

/// Upper-case letters of Unicode 16 and 17, and where their lower case begins.
struct NewerCase {
  char32_t first, last, lower;
};
constexpr NewerCase kNewerCases[] = {{0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x264},
                                     {0xA7CC, 0xA7CC, 0xA7CD},    {0xA7CE, 0xA7CE, 0xA7CF},
                                     {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},
                                     {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x19B},
                                     {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB}};

const UNormalizer2& nfd() {
  static const UNormalizer2* const kNfd = [] {
    UErrorCode status = U_ZERO_ERROR;
    return unorm2_getNFDInstance(&status);
  }();
  return *kNfd;
}

constexpr bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

CharClass class_of_ascii(char32_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  return c == ' ' || (c >= '\t' && c <= '\r') ? CharClass::kSpace : CharClass::kOther;
}

}  // namespace

void append_utf8(std::string& text, char32_t c) {
  std::array<char, U8_MAX_LENGTH> bytes;
  size_t length = 0;
  U8_APPEND_UNSAFE(bytes.data(), length, as_icu(c));
  text.append(bytes.data(), length);
}

std::string repaired_utf8(std::string_view text, Repair repair) {
  std::string repaired;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    UChar32 c;
    U8_NEXT(bytes, at, size, c);
    if (c >= 0) {
      repaired += text.substr(static_cast<size_t>(begin), static_cast<size_t>(at - begin));
    } else {
      const int64_t count = repair == Repair::kEachByte ? at - begin : 1;
      for (int64_t i = 0; i < count; ++i) append_utf8(repaired, 0xFFFD);
    }
  }
  return repaired;
}

std::vector<int64_t> code_points_before(std::string_view text) {
  std::vector<int64_t> before(text.size() + 1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto size = static_cast<int64_t>(text.size());
  int64_t count = 0;
  for (int64_t at = 0; at < size;) {
    const int64_t begin = at;
    UChar32 c;
    U8_NEXT(bytes, at, size, c);
    for (int64_t i = begin; i < at; ++i) {
      before[static_cast<size_t>(i)] = count;
      count += c < 0 ? 1 : 0;
    }
    count += c < 0 ? 0 : 1;
  }
  before.back() = count;
  return before;
}

bool is_white_space(char32_t c) {
  return c < 0x80 ? class_of_ascii(c) == CharClass::kSpace : u_isUWhiteSpace(as_icu(c)) != 0;
}

bool is_bert_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0xFFFD) return true;
  return (category(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 &&
         is_of(c, kBertUnicode);
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  if (c == 0x166D || c == 0x111C9) return true;  // Unicode changed their categories later
  return (category(c) & U_GC_P_MASK) != 0 && is_of(c, kBertUnicode);
}

bool is_bert_ideograph(char32_t c) {
  if (c < 0x3400) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_nonspacing_mark(char32_t c) {
  switch (c) {  // Unicode changed their categories later
    case 0x1734:
      return true;
    case 0x1885:
    case 0x1886:
    case 0xA9BD:
    case 0x111C9:
      return false;
    default:
      return (category(c) & U_GC_MN_MASK) != 0 && is_of(c, kBertUnicode);
  }
}

bool is_word_character(char32_t c) {
  constexpr uint32_t kMarksDigitsConnectors = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  const bool known = u_isUAlphabetic(as_icu(c)) != 0 ||
                     (category(c) & kMarksDigitsConnectors) != 0 ||
                     u_hasBinaryProperty(as_icu(c), UCHAR_JOIN_CONTROL) != 0;
  return known ? is_of(c, kPatternUnicode) : newer_kind(c) != 0;
}

CharClass class_of(char32_t c) {
  if (c < 0x80) return class_of_ascii(c);
  const uint32_t mask = category(c);
  if ((mask & (U_GC_L_MASK | U_GC_N_MASK)) != 0 && is_of(c, kPatternUnicode)) {
    return (mask & U_GC_L_MASK) != 0 ? CharClass::kLetter : CharClass::kNumber;
  }
  if (mask == U_GC_CN_MASK) {
    const char kind = newer_kind(c);
    return kind == 'L' ? CharClass::kLetter : kind == 'N' ? CharClass::kNumber : CharClass::kOther;
  }
  return is_white_space(c) ? CharClass::kSpace : CharClass::kOther;
}

char32_t lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  for (const NewerCase& range : kNewerCases) {
    if (c >= range.first && c <= range.last) return range.lower + (c - range.first);
  }
  return static_cast<char32_t>(u_tolower(as_icu(c)));
}

uint8_t combining_class(char32_t c) {
  const uint8_t combining = u_getCombiningClass(as_icu(c));
  return combining != 0 && is_of(c, kDecompositionUnicode) ? combining : 0;
}

int decompose(char32_t c, char32_t (&parts)[4]) {
  parts[0] = c;
  if (c < 0xC0) return 1;
  std::array<UChar, 8> units;
  UErrorCode status = U_ZERO_ERROR;
  const int32_t length = unorm2_getDecomposition(&nfd(), as_icu(c), units.data(),
                                                 static_cast<int32_t>(units.size()), &status);
  if (length < 0 || U_FAILURE(status) || !is_of(c, kDecompositionUnicode)) return 1;
  int count = 0;
  for (int32_t at = 0; at < length && count < 4; ++count) {
    UChar32 part;
    U16_NEXT(units.data(), at, length, part);
    parts[count] = static_cast<char32_t>(part);
  }
  return count;
}

}  // namespace stretto::text
