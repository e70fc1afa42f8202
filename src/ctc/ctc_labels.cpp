#include "ctc/ctc_labels.h"

#include <string_view>
#include <utility>

namespace stretto::ctc {
namespace {

constexpr std::string_view kWordMark = "\xE2\x96\x81";  // "▁"

bool is_separator(std::string_view name) {
  return name == " " || name == "|" || name == "<space>" || name == "[SPACE]";
}

/// "<pad>", "<unk>", "[UNK]": no part of a text.
bool is_special(std::string_view name) {
  return name.size() > 2 && ((name.front() == '<' && name.back() == '>') ||
                             (name.front() == '[' && name.back() == ']'));
}

}  // namespace

CtcLabels labels_by_name(std::vector<std::string> names) {
  CtcLabels labels;
  labels.names = std::move(names);
  labels.begins_word.assign(labels.names.size(), false);
  for (size_t i = 0; i < labels.names.size(); ++i) {
    std::string_view name = labels.names[i];
    if (labels.separator < 0 && is_separator(name)) {
      labels.separator = static_cast<int64_t>(i);
      labels.texts.emplace_back(" ");
      continue;
    }
    if (name.starts_with(kWordMark)) {
      labels.begins_word[i] = true;
      name.remove_prefix(kWordMark.size());
    }
    labels.texts.emplace_back(is_special(name) ? std::string_view() : name);
  }
  return labels;
}

}  // namespace stretto::ctc
