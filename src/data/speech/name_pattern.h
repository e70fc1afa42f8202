#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::data {

/// What a name says of an utterance.
struct NameParts {
  std::string text;  ///< with spaces for `_`
  std::string speaker = {}, id = {};
};

/// data.name_pattern: fields in braces, and what stands between them: `{text}_{speaker}_{take}`.
/// {text} is there once. No other field is empty, or has the first character of what stands between
/// it and the next one (behind {text}: and the one before): a text may have it, `yes_no_bob_2`.
class NamePattern {
 public:
  /// Throws Error(kUsage) for a pattern without {text} or with it twice, a brace that is not
  /// closed, and two fields with nothing between them.
  explicit NamePattern(const std::string& pattern);

  /// @param name  without its ending
  /// @return nothing where the name does not fit
  std::optional<NameParts> match(std::string_view name) const;

 private:
  struct Field {
    std::string name;
    std::string before;  ///< what stands in front of it
  };
  bool take_front(std::string_view& name, std::map<std::string, std::string>& found) const;
  bool take_back(std::string_view& name, std::map<std::string, std::string>& found) const;

  std::vector<Field> fields_;
  std::string behind_;  ///< what stands behind the last one
  size_t text_ = 0;     ///< the place of {text}
};

/// data.label_words: words that stand for labels.
class LabelWords {
 public:
  /// @param pairs  "LABEL WORDS" each. Throws Error(kUsage) for one without both, or a label twice
  explicit LabelWords(const std::vector<std::string>& pairs);
  /// The text with each word that is a label replaced.
  std::string apply(const std::string& text) const;

 private:
  std::map<std::string, std::string> words_;
};

}  // namespace stretto::data
