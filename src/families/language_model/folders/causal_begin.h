#pragma once

#include <filesystem>

#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// Makes the template of a tokenizer say which token `transformers` puts in front of a prompt: that
/// of `tokenizer.json`, unless `add_bos_token` of tokenizer_config.json decides. Tokenizers of
/// Llama's classes that say neither put `<s>` there.
///
/// Throws Error(kBadData) where `add_bos_token` asks for a token that the tokenizer does not have.
void set_causal_begin(const std::filesystem::path& folder, text::TokenizerSpec& spec);

}  // namespace stretto::interchange
