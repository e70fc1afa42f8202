#include "text/pronunciations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/text_rules.h"

namespace stretto::text {
namespace {

constexpr size_t kMostLexiconBytes = size_t{256} << 20;
constexpr const char* kLexiconAdvice =
    "each line is a word and its phonemes, such as: HELLO  HH AH0 L OW1";

const TextRules& in_lower_case() {
  static const TextRules kRules({"lower"});
  return kRules;
}

/// "hello" of "HELLO(1)".
std::string word_of_entry(std::string_view word) {
  if (word.size() > 3 && word.ends_with(')')) {
    const size_t open = word.rfind('(');
    const bool is_number = open != std::string_view::npos && open > 0 && open + 2 < word.size() &&
                           std::all_of(word.begin() + static_cast<std::ptrdiff_t>(open) + 1,
                                       word.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) word = word.substr(0, open);
  }
  return in_lower_case().apply(word);
}

}  // namespace

Pronunciations::Pronunciations(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !bytes.empty(); ++number) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string line = trim(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.empty() || line.starts_with(";;;")) continue;
    std::replace(line.begin(), line.end(), '\t', ' ');
    auto fields = split_words(line);
    const bool is_text = is_valid_utf8(line) && line.find('\0') == std::string::npos;
    if (fields.size() < 2 || !is_text) {
      throw Error(ExitCode::kBadData,
                  name + ":" + std::to_string(number) +
                      (is_text ? ": a word without phonemes: `" + printable(line, 60) + "`"
                               : ": is not UTF-8 text"),
                  kLexiconAdvice);
    }
    std::string word = word_of_entry(fields.front());
    fields.erase(fields.begin());
    words_.try_emplace(std::move(word), join(fields, " "));
  }
  if (words_.empty()) throw Error(ExitCode::kBadData, name + ": has no word", kLexiconAdvice);
}

std::string_view Pronunciations::of(std::string_view word) const {
  const auto found = words_.find(in_lower_case().apply(word));
  return found == words_.end() ? std::string_view() : std::string_view(found->second);
}

std::shared_ptr<const Pronunciations> read_pronunciations(const std::string& path) {
  return std::make_shared<const Pronunciations>(read_file(path, kMostLexiconBytes), path);
}

}  // namespace stretto::text
