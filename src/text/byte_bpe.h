#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/word_model.h"
#include "text/wordpiece.h"

namespace stretto::text {

/// The alphabet in which a byte-level vocabulary is written (Radford et al. 2019,
/// `bytes_to_unicode`): each byte is one printable character, the space U+0120 (Ġ).
/// @return UTF-8 of each byte's character
const std::array<std::string, 256>& byte_alphabet();
/// The bytes that a piece spells; empty where it has a character outside of the alphabet.
std::optional<std::string> bytes_of_piece(std::string_view piece);

struct ByteBpeOptions {
  bool of_characters = false;  ///< a word begins as its characters, and pieces are text
  bool byte_fallback = false;  ///< then: what has no piece is spelt by the pieces of its bytes
  /// The id of bytes without a piece; not given = they are left out, and the piece before covers
  /// them.
  std::optional<int64_t> unk_id;
  bool fuse_unk = false;       ///< neighbouring unknown bytes are one token
  bool ignore_merges = false;  ///< a word that is in the vocabulary is not cut
};

/// The bytes of a piece such as `<0x0A>`; nothing of another one.
std::optional<char> byte_of_fallback(std::string_view piece);

/// Byte-level BPE: a word begins as its bytes; the pair of the earliest merge is joined first, the
/// leftmost of equals (Sennrich et al. 2016, arXiv:1508.07909; Radford et al. 2019). Or
/// SentencePiece's, of characters (Kudo and Richardson 2018, arXiv:1808.06226).
class ByteBpeModel final : public WordModel {
 public:
  struct Merge {
    int32_t left, right, merged;
  };
  /// @param vocab   in the alphabet of bytes
  /// @param merges  earliest first; of equal pairs the last one counts
  ByteBpeModel(const PieceIds& vocab, const std::vector<Merge>& merges,
               const ByteBpeOptions& options);
  void cut(std::string_view word, std::vector<WordPiece>& pieces) const override;

 private:
  struct Entry {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t merged = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Word;
  static constexpr uint64_t kNoPair = ~uint64_t{0};

  const Entry* find(int32_t left, int32_t right) const;
  void begin_as_bytes(std::string_view bytes, std::vector<WordPiece>& symbols) const;
  void begin_as_characters(std::string_view text, std::vector<WordPiece>& symbols) const;
  bool spell_by_bytes(std::string_view character, std::vector<WordPiece>& symbols) const;
  void take_byte_pieces(const PieceIds& vocab);
  void take_character_pieces(const PieceIds& vocab);

  using Ids = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

  std::array<int32_t, 256> byte_ids_{};  ///< of bytes, or of their fallback; -1 = no piece
  Ids character_ids_;                    ///< of pieces that are one character
  std::optional<int64_t> unk_id_;
  bool of_characters_, byte_fallback_, fuse_unk_, ignore_merges_;
  std::vector<Entry> table_;  ///< open addressing; a power of two
  Ids whole_words_;
};

}  // namespace stretto::text
