#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "text/ngram/ngram_model.h"

namespace stretto::text {

/// Opens ARPA text (plain, or compressed with gzip) or a binary file of KenLM (probing or trie).
/// ARPA is read once: its memory-mapped form is kept in `cache_dir`, and opened from then on while
/// the text is unchanged.
/// @param cache_dir  empty = the user's cache folder
/// Throws Error(kUsage) where there is no file, Error(kBadData) with the line or the field for a
/// file that is none, is cut off or has back-offs that lead nowhere.
std::unique_ptr<NgramModel> open_ngram_model(const std::filesystem::path& path,
                                             const std::filesystem::path& cache_dir = {});

/// The same of bytes in memory, without a cache. @param place  their name in messages
std::unique_ptr<NgramModel> read_ngram_model(std::string bytes, const std::string& place);

}  // namespace stretto::text
