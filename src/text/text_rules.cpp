#include "text/text_rules.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/english_numbers.h"

namespace stretto::text {
namespace {

icu::UnicodeString unicode_of(std::string_view text) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}

std::string utf8_of(const icu::UnicodeString& text) {
  std::string utf8;
  text.toUTF8String(utf8);
  return utf8;
}

using FormOf = const icu::Normalizer2* (*)(UErrorCode& status);

/// In a form of Unicode; as it is where ICU has no data.
std::string in_form(std::string_view text, FormOf form_of) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = form_of(status);
  if (U_FAILURE(status)) return std::string(text);
  const icu::UnicodeString result = form->normalize(unicode_of(text), status);
  return U_FAILURE(status) ? std::string(text) : utf8_of(result);
}

std::string in_nfc(std::string_view text) {
  return in_form(text, [](UErrorCode& status) { return icu::Normalizer2::getNFCInstance(status); });
}

std::string in_nfkc(std::string_view text) {
  return in_form(text,
                 [](UErrorCode& status) { return icu::Normalizer2::getNFKCInstance(status); });
}

std::string lower_case(std::string_view text) {
  return utf8_of(unicode_of(text).toLower(icu::Locale::getRoot()));
}

std::string upper_case(std::string_view text) {
  return utf8_of(unicode_of(text).toUpper(icu::Locale::getRoot()));
}

/// Calls `take(c)` for each code point.
template <class Take>
void for_each_code_point(std::string_view text, const Take& take) {
  for (size_t at = 0; at < text.size();) take(next_code_point(text, at));
}

std::string without_accents(std::string_view text) {
  const std::string parted =
      in_form(text, [](UErrorCode& status) { return icu::Normalizer2::getNFDInstance(status); });
  std::string bare;
  for_each_code_point(parted, [&](char32_t c) {
    if (!is_nonspacing_mark(c)) append_utf8(bare, c);
  });
  return in_nfc(bare);
}

std::string with_plain_quotes(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c) {
    switch (c) {
      case U'\u2018':
      case U'\u2019':
      case U'\u201B':
      case U'\u02BC':
      case U'\uFF07':
        out += '\'';
        break;
      case U'\u201C':
      case U'\u201D':
      case U'\u201F':
      case U'\u00AB':
      case U'\u00BB':
        out += '"';
        break;
      default:
        append_utf8(out, c);
    }
  });
  return out;
}

bool is_dash(char32_t c) {
  return c == U'-' || c == U'/' || (c >= U'\u2010' && c <= U'\u2015');
}

/// An apostrophe between two letters is a part of a word.
std::string without_punctuation(std::string_view text) {
  std::string out;
  bool follows_letter = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    size_t next = at;
    const bool has_letter_behind =
        at < text.size() && class_of(next_code_point(text, next)) == CharClass::kLetter;
    if (c == U'\'' && follows_letter && has_letter_behind) {
      out += '\'';
    } else if (is_dash(c)) {
      out += ' ';
    } else if (!is_bert_punctuation(c)) {
      append_utf8(out, c);
    }
    follows_letter = class_of(c) == CharClass::kLetter;
  }
  return out;
}

/// Without what stands in <> and [], as marks of noise do.
std::string without_marks(std::string_view text) {
  std::string out;
  // Behind the last closing mark no search is needed: many open ones would take the square of time.
  const size_t last_angle = text.rfind('>'), last_square = text.rfind(']');
  const auto closes_behind = [](size_t last, size_t at) {
    return last != std::string_view::npos && last > at;
  };
  for (size_t at = 0; at < text.size();) {
    const bool is_angle = text[at] == '<' && closes_behind(last_angle, at);
    const bool is_square = text[at] == '[' && closes_behind(last_square, at);
    const size_t end =
        is_angle || is_square ? text.find(is_angle ? '>' : ']', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += text[at++];
    } else {
      out += ' ';
      at = end + 1;
    }
  }
  return out;
}

std::string with_single_spaces(std::string_view text) {
  std::string out;
  bool is_behind_space = false;
  for_each_code_point(text, [&](char32_t c) {
    if (is_white_space(c)) {
      is_behind_space = true;
      return;
    }
    if (is_behind_space && !out.empty()) out += ' ';
    is_behind_space = false;
    append_utf8(out, c);
  });
  return out;
}

struct TextRule {
  const char* name;
  const char* help;
  std::string (*apply)(std::string_view text);
};

constexpr std::array<TextRule, 11> kTextRules{{
    {"nfc", "characters composed (Unicode)", in_nfc},
    {"nfkc", "the same with compatible characters, such as ligatures, replaced", in_nfkc},
    {"lower", "lower case", lower_case},
    {"upper", "upper case", upper_case},
    {"accents", "letters without accents", without_accents},
    {"quotes", "typographic quotes and apostrophes as those of ASCII", with_plain_quotes},
    {"marks", "without what stands in <> and []", without_marks},
    {"numbers_en", "English numbers in words", with_number_words},
    {"titles_en", "English titles in words, such as Mr. and Dr.", with_whole_titles},
    {"punctuation", "without punctuation but apostrophes in words; dashes and slashes are spaces",
     without_punctuation},
    {"spaces", "single spaces, and none at the ends", with_single_spaces},
}};

}  // namespace

std::vector<std::string> text_rule_names() {
  std::vector<std::string> names;
  for (const auto& rule : kTextRules) names.emplace_back(rule.name);
  return names;
}

std::string text_rule_help() {
  std::vector<std::string> parts;
  for (const auto& rule : kTextRules) parts.push_back(std::string(rule.name) + ": " + rule.help);
  return join(parts, "; ");
}

TextRules::TextRules(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto found = std::find_if(kTextRules.begin(), kTextRules.end(),
                                    [&](const TextRule& rule) { return rule.name == name; });
    if (found == kTextRules.end()) {
      throw Error(ExitCode::kUsage, "no rule for texts is called `" + printable(name, 60) + "`",
                  "known: " + join(text_rule_names(), ", "));
    }
    rules_.push_back(found->apply);
  }
}

std::string TextRules::apply(std::string_view text) const {
  std::string current =
      is_valid_utf8(text) ? std::string(text) : repaired_utf8(text, Repair::kEachByte);
  for (const Rule rule : rules_) current = rule(current);
  return current;
}

}  // namespace stretto::text
