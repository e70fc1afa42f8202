#include "config/value_hints.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace stretto::config {
namespace {

// Values are short; a longer one is no misspelling of one.
constexpr size_t kLongestValue = 60;

// Letters and digits alone, small: "AdamW", "adam_w" and "adam-w" are one.
std::string squashed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

std::string in_quotes(const std::string& value) {
  return "\"" + value + "\"";
}

std::string did_you_mean(const std::string& value, const std::string& note) {
  return "did you mean " + in_quotes(value) + "?" + (note.empty() ? "" : " " + note);
}

// "1,000" and "12,345,678": between each two commas, and behind the last one, stand three digits.
bool has_thousands(const std::string& text) {
  size_t digits = 0, commas = 0;
  for (const char c : text) {
    const bool is_comma = c == ',';
    if (!is_comma && std::isdigit(static_cast<unsigned char>(c)) == 0) break;
    if (is_comma && (commas == 0 ? digits == 0 || digits > 3 : digits != 3)) return false;
    commas += is_comma ? 1 : 0;
    digits = is_comma ? 0 : digits + 1;
  }
  return commas > 0 && digits == 3 && text.front() != '0';
}

/// The number that people mean by "1,000", "0,001", "100k", ".5", or nothing.
std::optional<double> number_in(std::string text) {
  if (has_thousands(text)) std::erase(text, ',');
  if (std::count(text.begin(), text.end(), ',') == 1) text[text.find(',')] = '.';
  std::erase_if(text, [](char c) { return c == '_' || c == ' '; });
  double factor = 1;
  if (!text.empty() && (text.back() == 'k' || text.back() == 'K')) factor = 1e3;
  if (!text.empty() && text.back() == 'M') factor = 1e6;
  if (factor > 1) text.pop_back();
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value * factor;
}

std::string whole_number(double value) {
  if (std::abs(value) >= 1e15 || value != std::floor(value)) return "";
  return std::to_string(static_cast<int64_t>(value));
}

// Whether the text would do without its quotes.
bool is_toml_number(const std::string& text, bool is_integer) {
  const toml::parse_result parsed = toml::parse("v = " + text);
  if (!parsed || parsed.table().size() != 1) return false;
  const auto* node = parsed.table().get("v");
  return node != nullptr && (is_integer ? node->is_integer() : node->is_number());
}

std::string number_hint(const std::string& text, bool is_integer, bool quoted) {
  if (quoted && is_toml_number(text, is_integer)) return "leave the quotes out";
  const auto number = number_in(text);
  const std::string kind = is_integer ? "a whole number" : "a number";
  if (!number) return in_quotes(printable(text, kLongestValue)) + " is not " + kind;
  const std::string written = is_integer ? whole_number(*number) : number_text(*number);
  if (written.empty()) return in_quotes(printable(text, kLongestValue)) + " is not " + kind;
  return "write " + written;
}

std::string truth_hint(const std::string& text, bool quoted) {
  static constexpr std::array kTrue{"true", "yes", "on", "1"};
  static constexpr std::array kFalse{"false", "no", "off", "0"};
  const std::string word = squashed(text);
  const auto in = [&](const auto& list) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  if (!in(kTrue) && !in(kFalse)) return "";
  const std::string written = in(kTrue) ? "true" : "false";
  return quoted && written == text ? "leave the quotes out" : "write " + written;
}

std::string as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return std::to_string(value->get());
  if (const auto* value = node.as_floating_point()) return number_text(value->get());
  return "";
}

}  // namespace

const OtherValue* other_value(const std::vector<OtherValue>& other_values,
                              const std::string& text) {
  const std::string word = squashed(text);
  for (const auto& other : other_values) {
    if (squashed(other.name) == word) return &other;
  }
  return nullptr;
}

std::string value_as_written(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return "the string " + in_quotes(printable(text->get(), kLongestValue));
  }
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return "the integer " + std::to_string(value->get());
  if (const auto* value = node.as_floating_point())
    return "the number " + number_text(value->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or time";
}

std::string type_hint(const Key& key, const toml::node& node, bool quoted) {
  const std::string text = as_text(node);
  if (text.size() > kLongestValue) return "";
  if (std::holds_alternative<std::string*>(key.value) && !text.empty()) {
    // Quotes make none of the choices out of another word.
    if (!key.range.choices.empty()) return choice_hint(key, text);
    return "put it in quotes";
  }
  if (std::holds_alternative<bool*>(key.value)) return truth_hint(text, quoted);
  const bool is_integer = std::holds_alternative<int64_t*>(key.value);
  if (is_integer && node.is_floating_point()) {
    const std::string whole = whole_number(node.as_floating_point()->get());
    return whole.empty() ? "" : "write " + whole;
  }
  const bool is_number = is_integer || std::holds_alternative<double*>(key.value);
  return is_number && node.is_string() ? number_hint(text, is_integer, quoted) : "";
}

std::string choice_hint(const Key& key, const std::string& text) {
  return choice_hint(key.range.choices, key.other_values, text);
}

std::string choice_hint(const std::vector<std::string>& choices,
                        const std::vector<OtherValue>& other_values, const std::string& text) {
  if (text.size() > kLongestValue) return "";
  const std::string word = squashed(text);
  for (const auto& choice : choices) {
    if (squashed(choice) == word) return did_you_mean(choice, "");
  }
  if (const auto* other = other_value(other_values, text)) {
    return did_you_mean(other->value, other->note);
  }
  if (const auto near = closest(text, choices); !near.empty()) return did_you_mean(near, "");
  // Slips in the other names too.
  std::vector<std::string> names;
  for (const auto& other : other_values) names.push_back(squashed(other.name));
  const auto near = closest(word, names);
  if (near.empty()) return "";
  const auto* other = other_value(other_values, near);
  return did_you_mean(other->value, other->note);
}

}  // namespace stretto::config
