#pragma once

#include <filesystem>

#include "families/language_model/folders/causal_class.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// Makes the template of a tokenizer say which token `transformers` puts in front of a prompt.
///
/// Its classes for Llama put `bos_token` there unless tokenizer_config.json has `add_bos_token` =
/// false, whatever the template of tokenizer.json is. Other classes go by the template. A folder
/// with a tokenizer.model alone has no template: read_sentencepiece_folder() makes one.
///
/// @param its  whose tokenizer it is where tokenizer_config.json names no class
/// Throws Error(kBadData) where the tokenizer does not have the token that is named.
void set_causal_begin(const std::filesystem::path& folder, const CausalClass& its,
                      text::TokenizerSpec& spec);

}  // namespace stretto::interchange
