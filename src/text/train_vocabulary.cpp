#include "text/train_vocabulary.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/code_points.h"
#include "text/leading_specials.h"

namespace stretto::text {
namespace {

constexpr std::string_view kSpaces = " \t\n\v\f\r";

/// What no line of the file can say: special tokens, NUL, and a byte order mark in front.
bool is_left_out(std::string_view word) {
  const bool is_special = std::any_of(kLeadingPieces.begin(), kLeadingPieces.end(),
                                      [&](const char* piece) { return word == piece; });
  return is_special || word.find('\0') != std::string_view::npos ||
         word.starts_with(kByteOrderMark);
}

}  // namespace

std::string train_vocabulary(const std::vector<std::string>& lines, int64_t most) {
  std::unordered_map<std::string_view, int64_t> counts;  // views of the lines
  for (const std::string& line : lines) {
    if (!is_valid_utf8(line)) continue;
    const std::string_view text = line;
    for (size_t begin = text.find_first_not_of(kSpaces); begin != std::string_view::npos;) {
      const size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
      ++counts[text.substr(begin, end - begin)];
      begin = text.find_first_not_of(kSpaces, end);
    }
  }
  std::erase_if(counts, [](const auto& word) { return is_left_out(word.first); });
  if (counts.empty()) {
    throw Error(ExitCode::kBadData, "there is no text to take words from",
                "look at the training text that [data] names: it holds no usable line");
  }
  std::vector<std::pair<std::string_view, int64_t>> words(counts.begin(), counts.end());
  std::ranges::sort(words, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (std::ssize(words) > most) words.resize(static_cast<size_t>(most));
  std::string file;
  for (const auto& [word, count] : words) {
    file += std::string(word) + " " + std::to_string(count) + "\n";
  }
  return file;
}

}  // namespace stretto::text
