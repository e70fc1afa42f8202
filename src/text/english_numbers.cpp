#include "text/english_numbers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

namespace stretto::text {
namespace {

constexpr std::array<const char*, 20> kSmallNumbers{
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kTens{"",      "",      "twenty",  "thirty", "forty",
                                            "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<std::pair<uint64_t, const char*>, 4> kLargeNumbers{{
    {1'000'000'000'000, "trillion"},
    {1'000'000'000, "billion"},
    {1'000'000, "million"},
    {1'000, "thousand"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOrdinals{{
    {"one", "first"},
    {"two", "second"},
    {"three", "third"},
    {"five", "fifth"},
    {"eight", "eighth"},
    {"nine", "ninth"},
    {"twelve", "twelfth"},
}};
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kTitles{{
    {"mrs", "misess"},
    {"mr", "mister"},
    {"dr", "doctor"},
    {"st", "saint"},
    {"co", "company"},
    {"jr", "junior"},
    {"maj", "major"},
    {"gen", "general"},
    {"drs", "doctors"},
    {"rev", "reverend"},
    {"lt", "lieutenant"},
    {"hon", "honorable"},
    {"sgt", "sergeant"},
    {"capt", "captain"},
    {"esq", "esquire"},
    {"ltd", "limited"},
    {"col", "colonel"},
    {"ft", "fort"},
}};
constexpr size_t kMostDigits = 15;
constexpr std::string_view kPound = "\xC2\xA3";

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void append_word(std::string& text, std::string_view word) {
  if (!text.empty()) text += ' ';
  text += word;
}

std::string below_hundred(uint64_t number) {
  if (number < kSmallNumbers.size()) return kSmallNumbers[number];
  std::string words = kTens[number / 10];
  if (number % 10 != 0) words += std::string("-") + kSmallNumbers[number % 10];
  return words;
}

std::string below_thousand(uint64_t number) {
  std::string words;
  if (number >= 100) words = std::string(kSmallNumbers[number / 100]) + " hundred";
  if (number % 100 != 0 || number == 0) append_word(words, below_hundred(number % 100));
  return words;
}

uint64_t value_of(std::string_view digits) {
  uint64_t value = 0;
  for (const char digit : digits) value = value * 10 + static_cast<uint64_t>(digit - '0');
  return value;
}

std::string digit_words(std::string_view digits) {
  std::string words;
  for (const char digit : digits) {
    append_word(words, kSmallNumbers[static_cast<size_t>(digit - '0')]);
  }
  return words;
}

/// A number from 1001 to 2999, which is mostly a year.
std::string year_words(uint64_t year) {
  if (year == 2000) return "two thousand";
  if (year > 2000 && year < 2010) return "two thousand " + below_hundred(year % 100);
  if (year % 100 == 0) return below_hundred(year / 100) + " hundred";
  const std::string rest =
      year % 100 < 10 ? std::string("oh ") + kSmallNumbers[year % 100] : below_hundred(year % 100);
  return below_hundred(year / 100) + " " + rest;
}

bool is_read_digit_by_digit(std::string_view digits) {
  return digits.size() > kMostDigits || (digits.size() > 1 && digits.front() == '0');
}

std::string cardinal(std::string_view digits) {
  if (is_read_digit_by_digit(digits)) return digit_words(digits);
  const uint64_t value = value_of(digits);
  return value > 1000 && value < 3000 ? year_words(value) : number_words(value);
}

/// A number as it stands in a text.
struct WrittenNumber {
  std::string whole, fraction;  ///< their digits
  std::string_view ordinal;     ///< "st", "nd", "rd", "th"
  size_t size = 0;              ///< bytes
  bool is_grouped = false;      ///< commas parted its digits
};

size_t digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_ascii_digit(text[end])) ++end;
  return end - at;
}

WrittenNumber written_number(std::string_view text) {
  WrittenNumber number;
  number.size = digits_at(text, 0);
  number.whole = text.substr(0, number.size);
  if (number.size <= 3) {
    while (number.size < text.size() && text[number.size] == ',' &&
           digits_at(text, number.size + 1) == 3) {
      number.whole += text.substr(number.size + 1, 3);
      number.size += 4;
      number.is_grouped = true;
    }
  }
  if (number.size < text.size() && text[number.size] == '.') {
    const size_t behind = digits_at(text, number.size + 1);
    number.fraction = text.substr(number.size + 1, behind);
    if (behind > 0) number.size += 1 + behind;
  }
  if (!number.fraction.empty()) return number;
  for (const std::string_view ending : {"st", "nd", "rd", "th"}) {
    const std::string_view rest = text.substr(number.size);
    if (!rest.starts_with(ending)) continue;
    if (rest.size() > 2 && is_ascii_letter(rest[2])) continue;
    number.ordinal = ending;
    number.size += 2;
    break;
  }
  return number;
}

std::string written_words(const WrittenNumber& number) {
  if (!number.ordinal.empty() && !is_read_digit_by_digit(number.whole)) {
    return ordinal_words(value_of(number.whole));
  }
  std::string words =
      (number.is_grouped || !number.fraction.empty()) && !is_read_digit_by_digit(number.whole)
          ? number_words(value_of(number.whole))
          : cardinal(number.whole);
  if (!number.fraction.empty()) words += " point " + digit_words(number.fraction);
  return words;
}

std::string dollar_words(const WrittenNumber& number) {
  if (number.fraction.size() != 2 && !number.fraction.empty())
    return written_words(number) + " dollars";
  const bool is_one = number.whole == "1";
  const uint64_t cents = number.fraction.empty() ? 0 : value_of(number.fraction);
  std::string words = is_read_digit_by_digit(number.whole) ? cardinal(number.whole)
                                                           : number_words(value_of(number.whole));
  words += is_one ? " dollar" : " dollars";
  if (cents > 0) words += ", " + number_words(cents) + (cents == 1 ? " cent" : " cents");
  return words;
}

}  // namespace

std::string number_words(uint64_t number) {
  std::string words;
  for (const auto& [size, name] : kLargeNumbers) {
    if (number < size) continue;
    append_word(words, below_thousand(number / size));
    append_word(words, name);
    number %= size;
  }
  if (number != 0 || words.empty()) append_word(words, below_thousand(number));
  return words;
}

std::string ordinal_words(uint64_t number) {
  std::string words = number_words(number);
  const size_t begin = words.find_last_of(" -") + 1;
  const std::string last = words.substr(begin);
  words.resize(begin);
  for (const auto& [cardinal_form, ordinal_form] : kOrdinals) {
    if (last == cardinal_form) return words.append(ordinal_form);
  }
  if (last.ends_with('y')) return words + last.substr(0, last.size() - 1) + "ieth";
  return words + last + "th";
}

std::string with_number_words(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const size_t sign = rest.front() == '$' ? 1 : rest.starts_with(kPound) ? kPound.size() : 0;
    if (digits_at(rest, sign) == 0) {
      out += text[at++];
      continue;
    }
    const WrittenNumber number = written_number(rest.substr(sign));
    if (sign == 0) {
      out += written_words(number);
    } else {
      out += sign == 1 ? dollar_words(number) : written_words(number) + " pounds";
    }
    at += sign + number.size;
    if (at < text.size() && is_ascii_letter(text[at])) out += ' ';
  }
  return out;
}

std::string with_whole_titles(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    std::string word(text.substr(at, end - at));
    if (word.empty()) {
      out += text[at++];
      continue;
    }
    at = end;
    std::string lower = word;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto title = std::find_if(kTitles.begin(), kTitles.end(),
                                    [&](const auto& one) { return one.first == lower; });
    const bool is_title = end < text.size() && text[end] == '.' && title != kTitles.end();
    if (is_title) {
      out += title->second;
      ++at;  // the dot
    } else {
      out += word;
    }
  }
  return out;
}

}  // namespace stretto::text
