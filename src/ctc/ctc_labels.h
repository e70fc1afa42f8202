#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Shape letters: T frames, L labels. A frame has L + 1 classes; class L is the blank.
namespace stretto::ctc {

/// What the labels of a model mean as text.
struct CtcLabels {
  std::vector<std::string> names;  ///< [L] as lexicons and language models of labels have them
  /// [L] what a label adds to the text, without a word's mark; maybe a part of a character
  std::vector<std::string> texts;
  std::vector<bool> begins_word;  ///< [L] with a label of this kind a new word begins
  int64_t separator = -1;         ///< the label that stands between words; -1 = there is none

  int64_t size() const { return static_cast<int64_t>(names.size()); }
};

/// Labels by their names: " ", "|" or "<space>" is the separator, "▁" in front of a name begins a
/// word. A name in angle brackets or without a text, such as "<pad>", adds none.
CtcLabels labels_by_name(std::vector<std::string> names);

}  // namespace stretto::ctc
