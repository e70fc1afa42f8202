#include "data/squad/squad_problems.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "text/code_points.h"

namespace stretto::data {
namespace {

/// The byte of `text` before which it has so many units of UTF-16.
std::optional<int64_t> byte_of_utf16(std::string_view text, int64_t units) {
  int64_t passed = 0;
  for (size_t byte = 0; byte <= text.size(); ++byte) {
    const auto lead = static_cast<unsigned char>(byte < text.size() ? text[byte] : 0);
    if ((lead & 0xC0) == 0x80) continue;
    if (passed == units) return static_cast<int64_t>(byte);
    passed += lead >= 0xF0 ? 2 : 1;
  }
  return std::nullopt;
}

/// The canonical decomposition (NFD), in which texts of both NFC and NFD are equal.
std::string decomposed(std::string_view text) {
  std::vector<char32_t> characters;
  for (size_t at = 0; at < text.size();) {
    char32_t parts[4];
    const int count = text::decompose(text::next_code_point(text, at), parts);
    characters.insert(characters.end(), parts, parts + count);
  }
  // Marks in the order of their classes; a character of class 0 ends a sequence of them.
  const auto is_starter = [](char32_t c) { return text::combining_class(c) == 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if_not(begin, characters.end(), is_starter);
    const auto end = std::find_if(begin, characters.end(), is_starter);
    std::stable_sort(begin, end, [](char32_t a, char32_t b) {
      return text::combining_class(a) < text::combining_class(b);
    });
    begin = end;
  }
  std::string out;
  for (const char32_t c : characters) text::append_utf8(out, c);
  return out;
}

/// Whether a text has these characters in whatever form: as whole ones, so that `o` is not in `ö`.
bool has_in_other_form(std::string_view text, std::string_view part) {
  const std::string all = decomposed(text), wanted = decomposed(part);
  for (size_t at = all.find(wanted); at != std::string::npos; at = all.find(wanted, at + 1)) {
    size_t end = at + wanted.size();
    if (end == all.size() || text::combining_class(text::next_code_point(all, end)) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string problem_of_answer(const SquadAnswer& answer, const CodePoints& context,
                              const SquadQuestion& question) {
  if (question.is_impossible) return "it is marked `is_impossible`, but has an answer";
  if (answer.text.empty()) return "its answer is empty";
  const int64_t length = CodePoints(answer.text).size();
  const std::string quoted = "answer \"" + printable(answer.text, 60) + "\"";
  if (answer.begin < 0 || answer.begin > context.size() - length) {
    return quoted + " of " + counted(length, "character") + " at " + std::to_string(answer.begin) +
           " is outside its paragraph, which has " + counted(context.size(), "character");
  }
  const auto there = context.slice(answer.begin, answer.begin + length);
  if (there == answer.text) return "";
  return quoted + " is not at " + std::to_string(answer.begin) + ", where the paragraph has \"" +
         printable(there, 60) + "\"";
}

std::string advice_for_answer(const SquadAnswer& answer, std::string_view text,
                              const CodePoints& context, const SquadQuestion& question) {
  const std::string count = "answer_start counts Unicode characters from 0";
  if (question.is_impossible) {
    return "empty `answers`, or set `is_impossible` to false; SQuAD 2.0 keeps such answers as "
           "`plausible_answers`";
  }
  if (answer.text.empty()) return "remove it; a question without answers has an empty list";
  const size_t first = text.find(answer.text);
  if (first == std::string_view::npos) {
    if (has_in_other_form(text, answer.text)) {
      return "the answer is written in another Unicode normalisation than its paragraph: give both "
             "in the same form, such as NFC, and count answer_start in it";
    }
    return count + "; the paragraph does not contain this text: look for changed white space";
  }
  const auto stands_at_byte = [&](int64_t byte) {
    return byte >= 0 && byte <= static_cast<int64_t>(text.size()) &&
           text.substr(static_cast<size_t>(byte)).starts_with(answer.text);
  };
  if (stands_at_byte(answer.begin)) return count + "; this one counts bytes of UTF-8";
  if (const auto byte = byte_of_utf16(text, answer.begin); byte && stands_at_byte(*byte)) {
    return count + "; this one counts units of UTF-16";
  }
  return count + "; the text is at " +
         std::to_string(context.code_point_at(static_cast<int64_t>(first)));
}

}  // namespace stretto::data
