#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stretto::text {

/// A sub-word of a word.
struct WordPiece {
  int32_t id;
  uint32_t size;  ///< bytes of the word
  bool operator==(const WordPiece&) const = default;
};

/// Cuts words into sub-words. Safe to use from several threads.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the pieces of one word, which is not empty.
  virtual void cut(std::string_view word, std::vector<WordPiece>& pieces) const = 0;
};

}  // namespace stretto::text
