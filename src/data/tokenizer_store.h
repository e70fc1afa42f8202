#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "text/tokenizer.h"
#include "text/tokenizer_options.h"

/// Tokenizers, made once for a start, and those that are trained once for all starts over a text.
namespace stretto::data {

/// As text::make_tokenizers() of a text with one side. One that is trained lies in the cache under
/// LineSource::key() of its lines, its options and the seed, and the next start finds it there.
/// Where lines have no key, or nothing can be kept, each call trains. While a StartMemory lives, a
/// tokenizer that `options` names is read once, and one that cannot be trained is tried once.
///
/// @param lines      null where `options` names a tokenizer
/// @param cache_dir  data.cache_dir; empty = the user's cache folder
text::TokenizerPair open_tokenizers(const text::TokenizerOptions& options, uint64_t seed,
                                    text::LineSource* lines, const std::string& cache_dir);

/// As text::load_tokenizers(). While a StartMemory lives, calls with the same files share what they
/// load, and what open_tokenizers() made of them.
text::TokenizerPair open_tokenizers(const text::TokenizerOptions& options,
                                    const std::map<std::string, std::string>& assets);

}  // namespace stretto::data
