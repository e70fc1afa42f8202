#pragma once

#include <array>
#include <cstdint>

#include "text/special_ids.h"

/// For tokenizers of this room alone: everybody else asks Tokenizer::specials().
namespace stretto::text {

/// Where SentencePiece models and vocabularies have their special ids: they come first, whatever
/// the model's own are.
inline constexpr SpecialIds kLeadingSpecials{.pad = 0, .unk = 1, .bos = 2, .eos = 3};
inline constexpr int64_t kNumLeadingSpecials = 4;
/// Their pieces, in the order of ids.
inline constexpr std::array<const char*, kNumLeadingSpecials> kLeadingPieces{"<pad>", "<unk>",
                                                                             "<s>", "</s>"};

/// Whether text leaves this id out: `<unk>` shows.
constexpr bool is_silent(int64_t id) {
  return id == kLeadingSpecials.pad || id == kLeadingSpecials.bos || id == kLeadingSpecials.eos;
}

}  // namespace stretto::text
