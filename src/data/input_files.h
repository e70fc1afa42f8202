#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/content_hash.h"

namespace stretto::data {

/// Files of the inputs, each once, with the stamps they had before anything was read.
class InputFiles {
 public:
  /// @param paths  of `[data]`, as open_bytes() takes them
  explicit InputFiles(const std::vector<std::string>& paths);
  void hash(const std::filesystem::path& memory_dir, int64_t threads);
  /// The same by another way. @param stored_hash  gives the hash of the file of a path
  void hash(const std::function<uint64_t(const std::string& path)>& stored_hash);
  uint64_t hash_of(const std::string& path) const;  ///< of one of the paths; after hash()
  /// A cache under the key of one content must not hold another: throws Error(kBadData).
  void check_unchanged() const;

 private:
  bool was_merely_linked(size_t file) const;

  std::vector<std::string> paths_;  ///< the first of each file
  std::vector<std::filesystem::path> files_;
  std::vector<FileStamp> stamps_;
  std::vector<uint64_t> hashes_;
};

}  // namespace stretto::data
