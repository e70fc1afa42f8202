#pragma once

#include <filesystem>
#include <functional>

namespace stretto::data {

/// Makes a folder of the cache. Throws Error(kIo) with where to put the cache else.
void make_cache_directory(const std::filesystem::path& path);

/// Builds a folder of the cache beside its place and renames it, so that a build that is killed
/// leaves nothing that is used; what killed builds of this folder left is removed. The caller holds
/// the folder's lock. On failure nothing stays behind. Throws what `build` does, and Error(kIo).
/// @param build  writes the files into the folder that it is given
void build_aside(const std::filesystem::path& folder,
                 const std::function<void(const std::filesystem::path&)>& build);

}  // namespace stretto::data
