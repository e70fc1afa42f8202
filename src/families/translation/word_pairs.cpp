#include "families/translation/word_pairs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/text.h"
#include "data/lines.h"
#include "experiment/family_distillation.h"

namespace stretto::experiment {
namespace {

std::vector<std::string_view> blank_parted(std::string_view line) {
  constexpr const char* kBlanks = " \t";
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

[[noreturn]] void refuse_pair(const data::LineReader& lines, const std::string& problem) {
  throw Error(ExitCode::kBadData,
              lines.name() + ":" + std::to_string(lines.line_number()) + ": " + problem,
              "each line of decode.shortlist is SOURCE TARGET, or SOURCE TARGET PROBABILITY");
}

double pair_probability(std::string_view word, const data::LineReader& lines) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number) ||
      number < 0) {
    refuse_pair(lines, "`" + printable(word) + "` is no probability");
  }
  return number;
}

}  // namespace

std::vector<WordPair> read_word_pairs(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) {
    throw Error(ExitCode::kUsage, "decode.shortlist: there is no file " + path,
                "name the list where it is now, decode.shortlist=FILE; without one, "
                "decode.shortlist= chooses among all words");
  }
  std::vector<WordPair> pairs;
  data::LineReader lines(path);
  for (std::string_view line; lines.next(line);) {
    const auto words = blank_parted(line);
    if (words.empty()) continue;
    if (words.size() != 2 && words.size() != 3) {
      refuse_pair(lines, counted(std::ssize(words), "word"));
    }
    for (const auto word : {words[0], words[1]}) {
      if (word.size() <= kMostWordBytes) continue;
      refuse_pair(lines, "a word of " + counted(std::ssize(word), "byte") + ", at most " +
                             with_thousands(kMostWordBytes) + " are read");
    }
    pairs.push_back({.src = std::string(words[0]),
                     .tgt = std::string(words[1]),
                     .probability = words.size() == 3 ? pair_probability(words[2], lines) : 1});
  }
  if (!pairs.empty()) return pairs;
  throw Error(ExitCode::kBadData, path + " has no pair of words",
              "give a file of SOURCE TARGET [PROBABILITY] lines, or leave decode.shortlist out");
}

}  // namespace stretto::experiment
