#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace stretto {

/// Whole file as bytes. Throws Error(kUsage) when it does not exist, Error(kIo) when it cannot be
/// read, Error(kBadData) when it is larger than `max_bytes` (0 = no limit).
std::string read_file(const std::filesystem::path& path, size_t max_bytes = 0);

/// Replaces `path` with `bytes` so that a reader, or a machine that loses power, sees the old file
/// or the new one, never a part: written beside it, fsynced, renamed, folder fsynced.
/// Throws Error(kIo) with the system's reason and leaves no temporary file behind.
void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

/// fsync of a folder, which makes a rename inside it durable. Throws Error(kIo).
void fsync_directory(const std::filesystem::path& directory);

/// Turns errno into Error(kIo, "<action> <path>: <strerror>") with a remedy for ENOSPC, EDQUOT,
/// EACCES, EROFS and EMFILE.
[[noreturn]] void throw_io_error(std::string_view action, const std::filesystem::path& path,
                                 int errno_value);

/// A read-only memory map of a whole file; an empty file gives an empty view.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);  ///< throws as read_file does
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  size_t size() const { return size_; }

 private:
  const void* data_ = nullptr;
  size_t size_ = 0;
};

/// An advisory lock on a file (flock), held until destruction; the file tells who holds it
/// (host, pid, command) and stays behind unlocked.
class FileLock {
 public:
  /// Waits for the lock. Throws Error(kIo) when the file cannot be created.
  static FileLock wait(const std::filesystem::path& path);
  /// Throws Error(kUsage) at once, naming the holder, when another process has the lock.
  static FileLock try_now(const std::filesystem::path& path, std::string_view purpose);

  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// The user's cache folder: $STRETTO_CACHE, else $XDG_CACHE_HOME/stretto, else ~/.cache/stretto.
std::filesystem::path user_cache_dir();

}  // namespace stretto
