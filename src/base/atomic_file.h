#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace stretto {

/// Replaces a file by one that is written chunk by chunk, so that a reader, or a machine that loses
/// power, sees the old file or the new one, never a part. It is written beside the other as
/// `<name>.tmp-<pid>-<n>` and renamed at the end. A symbolic link at `path` is replaced, not
/// followed.
///
///     AtomicFile file(path);
///     file.write(bytes);
///     file.publish();
///
/// Members throw Error(kIo) with the system's reason. Without publish() nothing is left behind;
/// what processes that were killed left of the same file goes first (base/stray_files.h).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Takes owner, group, mode and access list (ACL) of this file, as far as the system allows; for
  /// the file that will be replaced, before anything is written.
  void take_attributes_of(const std::filesystem::path& other);

  void write(std::string_view bytes);  ///< at the end
  /// Writes over bytes that there are already, a header for instance.
  void write_at(uint64_t offset, std::string_view bytes);
  /// Fsyncs the file, renames it and fsyncs the folder.
  void publish();

 private:
  class Temporary;
  std::filesystem::path path_;
  std::unique_ptr<Temporary> temporary_;
};

}  // namespace stretto
