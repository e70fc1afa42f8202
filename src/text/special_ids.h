#pragma once

#include <cstdint>

namespace stretto::text {

/// Ids of a vocabulary that stand for no text; -1 = it has none of the kind. Each tokenizer has its
/// own (Tokenizer::specials): whoever needs one asks for it, and no number is the same everywhere.
///
/// Two of them may be one id: some vocabularies begin and end a sentence with the same token.
struct SpecialIds {
  int64_t pad = -1;   ///< padding; its row of an embedding starts at zero
  int64_t unk = -1;   ///< text that the vocabulary cannot spell
  int64_t bos = -1;   ///< beginning-of-sentence; a decoder's first input; BERT's [CLS]
  int64_t eos = -1;   ///< end-of-sentence; what a decoder ends with; BERT's separator
  int64_t mask = -1;  ///< what stands for a hidden token, which is to be found

  bool operator==(const SpecialIds&) const = default;
};

}  // namespace stretto::text
