#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "data/content_hash.h"
#include "data/file_digest.h"

namespace stretto::data {

/// While one lives, this process remembers the digests and hashes that it makes of files, those of
/// folders and manifests too (ListedFiles), whatever the files' age: all that a start asks of a
/// file is then told by one reading. A file whose stamp is another one is read again. Several may
/// live at once; with the last one all is forgotten.
class StartMemory {
 public:
  StartMemory();
  ~StartMemory();
  StartMemory(const StartMemory&) = delete;
  StartMemory& operator=(const StartMemory&) = delete;

  /// What was remembered under a name of a file with this stamp.
  static std::optional<FileDigest> find(const std::string& name, const FileStamp& stamp);
  /// Does nothing where none lives. @param stamp  from before the file was read
  static void put(const std::string& name, const FileStamp& stamp, const FileDigest& digest);

  /// What was read of a file's content, under a name of both; null where it was not kept.
  static std::shared_ptr<const void> find_read(const std::string& name);
  static void keep_read(const std::string& name, std::shared_ptr<const void> content);
};

}  // namespace stretto::data
