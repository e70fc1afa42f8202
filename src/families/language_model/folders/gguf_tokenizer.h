#pragma once

#include <string>

#include "store/gguf_file.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {

/// Why llama.cpp would cut text into other tokens than this tokenizer does; empty when it would
/// not.
std::string gguf_tokenizer_problem(const text::TokenizerSpec& tokenizer);

/// Keys `tokenizer.ggml.…` of a tokenizer that has no gguf_tokenizer_problem().
/// @param end_token  ends a text beside the tokenizer's own end; empty = nothing does
void add_gguf_tokenizer(const text::TokenizerSpec& tokenizer, const std::string& end_token,
                        store::GgufFile& file);

}  // namespace stretto::interchange
