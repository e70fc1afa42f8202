#pragma once

#include <memory>

#include "decoding/decode_options.h"
#include "decoding/shortlist.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// The list that `decode.shortlist` names, by these tokenizers; null where it names none.
///
/// The tokenizers cut the words of the file (families/translation/word_pairs.h), and each source
/// piece of a word is paired with all target pieces of the other. In a file in which a word begins
/// with SentencePiece's "▁", words are pieces themselves, as far as there are such pieces.
/// Throws as read_word_pairs() does.
std::shared_ptr<const decoding::Shortlist> open_shortlist(const decoding::DecodeOptions& options,
                                                          const text::TokenizerPair& tokenizers);

}  // namespace stretto::tasks
