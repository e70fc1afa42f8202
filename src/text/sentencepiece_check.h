#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace stretto::text {

/// The largest model that is read.
inline constexpr size_t kMaxSentencePieceBytes = size_t{512} << 20;

/// What a model says of itself that the library does not tell.
struct SentencePieceKinds {
  SubwordModel::Kind model = SubwordModel::Kind::kUnigram;
  std::vector<bool> is_ordinary =
      {};  ///< of each piece: neither special, byte, unused nor defined by a user
  std::vector<bool> is_user_defined = {};  ///< of each piece: found in text before it is cut
};

/// Looks through the bytes of a SentencePiece model (a protobuf `ModelProto`) before the library
/// sees them, because the library trusts parts of them. Memory and time are linear in the size.
///
/// Checked: the wire format; at most 2 million pieces of at most 4 KiB, each with a finite score
/// and a known type; every normalisation table (`precompiled_charsmap`): each unit of its trie that
/// a walk can reach lies inside it, and so does each replacement, which ends inside it too.
///
/// @param where  the file's name, for messages
/// Throws Error(kBadData).
SentencePieceKinds check_sentencepiece_model(std::string_view bytes, std::string_view where);

/// The table alone: 32-bit size of the trie, the trie (Darts double array), replacements.
/// Throws Error(kBadData).
void check_charsmap(std::string_view blob, std::string_view where);

}  // namespace stretto::text
