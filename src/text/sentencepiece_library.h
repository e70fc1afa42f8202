#pragma once

#include <sentencepiece_processor.h>

#include <memory>
#include <string>
#include <string_view>

#include "text/sentencepiece_check.h"

/// The SentencePiece library, for tokenizers of this room alone.
namespace stretto::text {

/// A model in the library, which saw it after the check.
struct SentencePieceLibrary {
  sentencepiece::SentencePieceProcessor processor;
  SentencePieceKinds kinds;
};

/// Throws Error(kBadData) for a model that the check or the library refuses.
/// @param where  the file, for messages
std::unique_ptr<const SentencePieceLibrary> load_sentencepiece(const std::string& model_bytes,
                                                               std::string_view where);

/// Throw Error(kBadData) where the library could not split a line, or join pieces.
void require_split(const sentencepiece::util::Status& status);
void require_joined(const sentencepiece::util::Status& status);

}  // namespace stretto::text
