#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/content_hash.h"
#include "data/data_file.h"
#include "data/file_digest.h"

namespace stretto::data {

/// A file of a folder, or one that a manifest names.
struct ListedFile {
  std::string name;  ///< below the folder; of a manifest the absolute path
  int64_t line = 0;  ///< of the manifest, from 1
  DataKind kind = DataKind::kBytes;
  FileStamp stamp = {};
  uint64_t size = 0;  ///< of the content
  uint64_t hash = 0;  ///< XXH3-64 of the content
};

/// The files behind one path of `[data]`: below a folder in the order of their names, byte by byte,
/// or in the order of a manifest's rows. A million of them takes about 150 MB.
///
/// Below a folder there may be folders and regular files, and nothing else: a link could lead
/// anywhere, and a pipe or a device has no content. A manifest names what it likes, as a
/// configuration does: its links are followed.
class ListedFiles {
 public:
  /// Lists the files of a tree or of a manifest, with their stamps.
  /// Throws Error(kUsage) for a tree that is no folder, or that has something else in it, by name;
  /// Error(kBadData) with the line for a named file that is not there or no regular file;
  /// Error(kIo) for a folder that cannot be read.
  ListedFiles(const DataFile& source, int64_t threads);

  /// Reads all files, several at once. The hashes of those whose stamp is that of then are known:
  /// a file in the memory folder has all of this list, and while a StartMemory lives, it has them
  /// whatever their age. Throws Error(kBadData) for a file that changes or vanishes meanwhile.
  void hash(const DigestSetting& setting);

  const std::vector<ListedFile>& files() const { return files_; }
  /// A hash of all names and stamps.
  uint64_t stamp() const;

 private:
  std::filesystem::path path_of(const ListedFile& file) const;
  void look_at(ListedFile& file) const;
  void read(ListedFile& file, const DigestSetting& setting) const;
  static uint64_t identity_of(const ListedFile& file);
  std::filesystem::path memory_path(const std::filesystem::path& memory_dir) const;
  std::vector<size_t> take_remembered(const std::filesystem::path& memory_dir);
  void remember(const std::filesystem::path& memory_dir) const;
  /// Of these files with these stamps.
  std::string name_in_start() const;
  bool take_from_start(const std::string& name);
  void keep_for_start(const std::string& name) const;

  bool is_tree_;
  std::string source_;  ///< the folder or the manifest
  std::vector<ListedFile> files_;
};

}  // namespace stretto::data
