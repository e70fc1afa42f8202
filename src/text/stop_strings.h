#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

/// Texts that end a text: which come in parts, as a model writes them.
///
/// The text ends in front of the first stop string that is complete: the one whose last byte comes
/// first, and of those that end there the longest. Where the parts are cut makes no difference. An
/// end of the text that may become a stop string is held back until it is known.
class StopStrings {
 public:
  /// Empty ones are left out.
  explicit StopStrings(std::vector<std::string> stops);

  /// The next part -> what is known to belong to the text now. Nothing behind a stop string.
  std::string add(std::string_view part);
  /// What was held back; the text has ended without a stop string.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  size_t held_back() const;

  std::vector<std::string> stops_;
  std::string held_;  ///< an end of the text that begins a stop string, or that was not looked at
  bool stopped_ = false;
};

}  // namespace stretto::text
