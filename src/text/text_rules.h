#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Rules by which a text is written anew before it is cut into units, by name.
namespace stretto::text {

/// "lower", "punctuation", …, for a list of rules in the order that a user states.
std::vector<std::string> text_rule_names();
/// "lower: lower case; upper: upper case; …", for the help of a key.
std::string text_rule_help();

/// Applies rules in order. Safe to use from several threads.
class TextRules {
 public:
  /// Throws Error(kUsage) for an unknown name, with the known ones.
  explicit TextRules(const std::vector<std::string>& names);
  /// @param text  UTF-8; what is not is U+FFFD for each byte
  std::string apply(std::string_view text) const;

 private:
  using Rule = std::string (*)(std::string_view text);
  std::vector<Rule> rules_;
};

}  // namespace stretto::text
