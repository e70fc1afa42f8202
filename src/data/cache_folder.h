#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace stretto::data {

/// The folder of the cache, made where there is none: `chosen`, data.cache_dir, or the user's own
/// cache folder where that is empty. The cache holds people's text: what is made is open to this
/// user alone (0700), and so are the user's own cache folder and entries that were made otherwise.
/// A folder that was there and was chosen stays as it is. Throws as make_cache_directory() does.
std::filesystem::path open_cache(const std::string& chosen);

/// What to do where the cache cannot be written.
inline constexpr const char* kCacheRemedy =
    "set data.cache_dir to a folder where you may write, on a disk with room";

/// Throws Error(kIo) for what failed in writing the cache: `failure`, and kCacheRemedy.
[[noreturn]] void throw_cache_unwritten(const Error& failure);

/// Does what writes into the cache. Its Error(kIo) passes as throw_cache_unwritten() has it.
template <class Write>
auto in_cache(const Write& write) -> decltype(write()) {
  try {
    return write();
  } catch (const Error& error) {
    if (error.code() != ExitCode::kIo) throw;
    throw_cache_unwritten(error);
  }
}

/// Makes a folder in the cache, and those above it, for this user alone. Throws Error(kIo) with
/// where to put the cache else.
void make_cache_directory(const std::filesystem::path& path);

/// Takes the rights of others away from a folder of this user; one that is not there is no error.
void make_private(const std::filesystem::path& folder);

/// Does what saves work later and is no need: writes what a cache remembers.
/// @return why the system refuses it; empty: it is done. Other errors pass
template <class Work>
std::string refusal_of(const Work& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    if (error.code() != ExitCode::kIo) throw;
    return error.what();
  }
}

/// Builds a folder of the cache beside its place and renames it, so that a build that is killed
/// leaves nothing that is used; what killed builds of this folder left is removed. The caller holds
/// the folder's lock. On failure nothing stays behind. Throws what `build` does, and Error(kIo)
/// with where to put the cache else.
/// @param build  writes the files into the folder that it is given
void build_aside(const std::filesystem::path& folder,
                 const std::function<void(const std::filesystem::path&)>& build);

/// Warns that a folder of the cache is damaged, which is why it is built again; during a
/// log::Silence, too.
void warn_of_damage(const std::filesystem::path& folder);
/// Throws Error(kIo) for a folder that is not there right after it was built.
[[noreturn]] void throw_vanished(const std::filesystem::path& folder);

/// Throws Error(kIo) for what was verified when it was opened, and is something else now.
/// @param folder  of the cache
[[noreturn]] void throw_damaged_in_use(const std::string& folder);

/// What `find` gives; nothing where a file that was there a moment ago is gone, since another
/// process makes a damaged folder again.
template <class Find>
auto find_beside_others(const Find& find, bool& damaged) -> decltype(find(damaged)) {
  try {
    return find(damaged);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;  // "no such file"
    return std::nullopt;
  }
}

/// What lies whole in a folder of the cache; else one process builds it, under a lock, and the
/// others wait for it. What is damaged is built again, with a warning.
/// @param find   bool& damaged -> std::optional<T>: nothing where there is none that is whole;
///               `damaged`, false before, becomes whether there is something else instead
/// @param build  as of build_aside()
/// @return T, and whether it had to be built
template <class Find>
auto find_or_build(const std::filesystem::path& folder, const Find& find,
                   const std::function<void(const std::filesystem::path&)>& build) {
  bool damaged = false;
  if (auto found = find_beside_others(find, damaged)) return std::pair(std::move(*found), false);
  const FileLock lock = in_cache([&] { return FileLock::wait(folder.string() + ".lock"); });
  damaged = false;
  if (auto found = find(damaged)) return std::pair(std::move(*found), false);
  if (damaged) warn_of_damage(folder);
  build_aside(folder, build);
  auto found = find(damaged);
  if (!found) throw_vanished(folder);
  return std::pair(std::move(*found), true);
}

}  // namespace stretto::data
