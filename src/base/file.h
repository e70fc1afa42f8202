#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/io_error.h"  // part of this interface

namespace stretto {

/// The most bytes of a file that is read whole and whose kind says nothing of its size.
inline constexpr size_t kMaxWholeFileBytes = size_t{1} << 30;
/// The most bytes of `config.toml`, `run.json` and files like these, which people write or read.
inline constexpr size_t kMaxSmallTextBytes = size_t{1} << 20;

/// Whole file as bytes. Throws Error(kUsage) when it does not exist or is no regular file (a pipe
/// would keep the reader waiting, a device has no end), Error(kIo) when it cannot be read,
/// Error(kBadData) when it is larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, size_t max_bytes = kMaxWholeFileBytes);

/// Replaces `path` with `bytes` so that a reader, or a machine that loses power, sees the old file
/// or the new one, never a part: written beside it as `<name>.tmp-<pid>-<n>`, fsynced, renamed,
/// folder fsynced. A symbolic link at `path` is replaced, not followed.
///
/// Throws Error(kIo) with the system's reason and leaves no temporary file behind. Those of
/// processes that were killed while they wrote the same file are removed first
/// (base/stray_files.h).
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a folder, which makes a rename inside it durable. Throws Error(kIo).
void fsync_directory(const std::filesystem::path& directory);

/// rename(2), repeated when a signal interrupts it. Throws Error(kIo).
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes a folder and those above it, as `mkdir -p` does.
/// @return true when it was not there before. Throws Error(kIo).
bool make_directories(const std::filesystem::path& path);

/// A read-only memory map of a whole file; an empty file gives an empty view.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);  ///< throws as open_to_read() does
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  size_t size() const { return size_; }

  /// Takes what was read of these bytes out of the process's memory: whoever reads them again gets
  /// them from the file. For parts of bytes() alone.
  void forget(std::string_view part) const;

 private:
  const void* data_ = nullptr;
  size_t size_ = 0;
};

/// An advisory lock on a file (flock), held until destruction; the file says who holds it (host,
/// pid, command) and stays behind unlocked. The file is opened by open_own_file().
class FileLock {
 public:
  /// Waits for the lock. Throws Error(kIo) when the file cannot be created.
  static FileLock wait(const std::filesystem::path& path);
  /// Whether another process has the lock now. A file that does not exist is not held.
  static bool is_held(const std::filesystem::path& path);
  /// Throws Error(kUsage) at once, naming the holder, when another process has the lock.
  static FileLock try_now(const std::filesystem::path& path, std::string_view purpose);

  ~FileLock();
  FileLock(FileLock&& other) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  void release();
  Descriptor file_;
};

/// The user's cache folder: $STRETTO_CACHE, else $XDG_CACHE_HOME/stretto, else ~/.cache/stretto.
std::filesystem::path user_cache_dir();

}  // namespace stretto
