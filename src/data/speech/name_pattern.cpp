#include "data/speech/name_pattern.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr const char* kPatternAdvice =
    "write it as {text}_{speaker}_{take}: names in braces, {text} once, and characters between "
    "them";

[[noreturn]] void refuse_pattern(const std::string& pattern, const std::string& what) {
  throw Error(ExitCode::kUsage, "data.name_pattern: `" + printable(pattern, 200) + "` " + what,
              kPatternAdvice);
}

}  // namespace

NamePattern::NamePattern(const std::string& pattern) {
  size_t num_texts = 0;
  std::string before;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '}') refuse_pattern(pattern, "closes a brace that is not open");
    if (pattern[at] != '{') {
      before += pattern[at++];
      continue;
    }
    const size_t end = pattern.find_first_of("{}", at + 1);
    if (end == std::string::npos || pattern[end] == '{') {
      refuse_pattern(pattern, "has a brace that is not closed");
    }
    if (!fields_.empty() && before.empty()) {
      refuse_pattern(pattern, "has two names with nothing between them");
    }
    std::string name = pattern.substr(at + 1, end - at - 1);
    if (name.empty()) refuse_pattern(pattern, "has braces without a name");
    if (name == "text") {
      text_ = fields_.size();
      ++num_texts;
    }
    fields_.push_back({.name = std::move(name), .before = std::exchange(before, "")});
    at = end + 1;
  }
  behind_ = before;
  if (num_texts != 1) {
    refuse_pattern(pattern, num_texts == 0 ? "has no {text}" : "has {text} more than once");
  }
}

/// Fields in front of {text}: each ends where what follows it begins.
bool NamePattern::take_front(std::string_view& name,
                             std::map<std::string, std::string>& found) const {
  for (size_t i = 0; i <= text_; ++i) {
    if (!name.starts_with(fields_[i].before)) return false;
    name.remove_prefix(fields_[i].before.size());
    if (i == text_) return true;
    const size_t end = name.find(fields_[i + 1].before);
    if (end == std::string_view::npos || end == 0) return false;
    found[fields_[i].name] = name.substr(0, end);
    name.remove_prefix(end);
  }
  return true;
}

/// Fields behind {text}, from the last one on.
bool NamePattern::take_back(std::string_view& name,
                            std::map<std::string, std::string>& found) const {
  if (!name.ends_with(behind_)) return false;
  name.remove_suffix(behind_.size());
  for (size_t i = fields_.size() - 1; i > text_; --i) {
    const std::string& before = fields_[i].before;
    const size_t begin = name.rfind(before);
    if (begin == std::string_view::npos || begin + before.size() == name.size()) return false;
    found[fields_[i].name] = name.substr(begin + before.size());
    name = name.substr(0, begin);
  }
  return true;
}

std::optional<NameParts> NamePattern::match(std::string_view name) const {
  std::map<std::string, std::string> found;
  if (!take_front(name, found) || !take_back(name, found)) return std::nullopt;
  NameParts parts{.text = std::string(name)};
  std::replace(parts.text.begin(), parts.text.end(), '_', ' ');
  parts.text = trim(parts.text);
  if (parts.text.empty()) return std::nullopt;
  parts.speaker = found["speaker"];
  parts.id = found["id"];
  return parts;
}

LabelWords::LabelWords(const std::vector<std::string>& pairs) {
  for (const auto& pair : pairs) {
    const auto words = split_words(pair);
    if (words.size() < 2) {
      throw Error(ExitCode::kUsage,
                  "data.label_words: `" + printable(pair, 100) + "` is no label with its words",
                  "write each as \"LABEL WORDS\", such as \"0 zero\"");
    }
    const std::vector<std::string> behind(words.begin() + 1, words.end());
    if (words_.emplace(words.front(), join(behind, " ")).second) continue;
    throw Error(
        ExitCode::kUsage,
        "data.label_words: label `" + printable(words.front(), 100) + "` stands there twice",
        "give each label its words once");
  }
}

std::string LabelWords::apply(const std::string& text) const {
  if (words_.empty()) return text;
  auto words = split_words(text);
  for (auto& word : words) {
    if (const auto found = words_.find(word); found != words_.end()) word = found->second;
  }
  return join(words, " ");
}

}  // namespace stretto::data
