#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/word_model.h"

namespace stretto::text {

/// Remembers how a model cuts words: text repeats most of them. For one thread at a time; bounded,
/// and emptied when full.
class WordCache {
 public:
  explicit WordCache(const WordModel& model) : model_(model) {}
  /// The pieces of a word that is not empty, valid until the next call.
  std::span<const WordPiece> cut(std::string_view word);

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, pieces = 0;  ///< where they begin
    uint16_t word_size = 0, num_pieces = 0;
  };
  std::span<const WordPiece> cut_anew(std::string_view word);
  void remember(Slot& slot, uint64_t hash, std::string_view word);

  const WordModel& model_;
  std::vector<Slot> slots_;  ///< open addressing
  size_t num_words_ = 0;
  std::string words_;
  std::vector<WordPiece> pieces_, fresh_;
};

}  // namespace stretto::text
