#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/input_files.h"

namespace stretto::data {

/// Files of `[data]` from which a store of the cache is made.
struct CachedInputs {
  std::filesystem::path root;  ///< of the cache
  InputFiles files;
  /// For a key: what each file holds and how it is packed, not where it lies.
  std::vector<std::string> contents;
};

/// Opens the cache, and tells files apart by their content.
/// @param cache_dir  data.cache_dir; empty = the user's cache folder
/// @return nothing where the files cannot be told apart: reading says what is wrong with them
/// Throws Error(kIo) where there is no cache.
std::optional<CachedInputs> open_cached_inputs(const std::string& cache_dir,
                                               const std::vector<std::string>& paths);

/// A part of a key that no other part can run into: "4:text".
std::string sized(const std::string& text);

}  // namespace stretto::data
