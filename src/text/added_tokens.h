#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/piece_trie.h"
#include "text/word_splits.h"

namespace stretto::text {

/// A token that is looked for in the text before the model cuts it, such as `[MASK]`.
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool single_word = false;  ///< only where no word character stands beside it
  bool lstrip = false;       ///< takes the white space on its left
  bool rstrip = false;       ///< takes the white space on its right
  bool normalized = true;    ///< looked for in the normalised text, itself normalised
  bool special = false;      ///< left out of decoded text
  bool operator==(const AddedToken&) const = default;
};

/// Finds added tokens: the leftmost first, of those the longest.
class AddedTokens {
 public:
  /// A part of a text: an added token, or what stands between them.
  struct Part {
    ByteRange range;
    const AddedToken* token = nullptr;  ///< null = ordinary text
  };

  AddedTokens() = default;
  /// @param patterns  what is looked for, for each token; not empty, and no two are equal
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);

  bool empty() const { return tokens_.empty(); }
  /// Appends the parts of well-formed UTF-8. An rstrip token and the next one may overlap in white
  /// space.
  void split(std::string_view text, std::vector<Part>& parts) const;

 private:
  std::vector<AddedToken> tokens_;
  PieceTrie trie_;  ///< pattern -> index of its token
};

}  // namespace stretto::text
