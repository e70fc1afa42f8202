#pragma once

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// The tokenizer of a folder with a SentencePiece `tokenizer.model` and no tokenizer.json, as
/// LlamaTokenizerFast of `transformers` reads it. tokenizer_config.json says what is added to the
/// model: `add_bos_token` (true without the key), `add_eos_token`, `add_prefix_space`, `legacy`,
/// names of special tokens, and added tokens; added_tokens.json and special_tokens_map.json count
/// as for other tokenizers.
///
/// Throws Error(kBadData) for a model that is broken or not of BPE, for another `tokenizer_class`,
/// and for a token around texts that is not in the vocabulary.
text::TokenizerSpec read_sentencepiece_folder(const std::filesystem::path& folder);

}  // namespace stretto::interchange
