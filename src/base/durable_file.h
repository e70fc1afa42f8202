#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace stretto {

/// A new file that is on the disk, not only in the system's cache, once `close` has returned.
///
/// Interrupted and short writes go on where they stopped, and interrupted calls are repeated. Any
/// other failed fsync is final: the system may have dropped the pages, so that a second fsync would
/// report success for bytes that are lost.
///
///     DurableFile file(path, "checkpoint.model");  // passes failpoints checkpoint.model.open, …
///     file.write(bytes);
///     file.close();
class DurableFile {
 public:
  /// Creates `path`, which must not exist.
  /// @param failpoints  prefix of the failpoints `.open`, `.write`, `.fsync` and `.close`
  /// Throws Error(kIo), as all members do.
  DurableFile(std::filesystem::path path, std::string failpoints);
  ~DurableFile();  ///< closes without fsync when `close` was not called; leaves the file there
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::string_view bytes);
  /// Writes over bytes that were written before.
  void write_at(uint64_t offset, std::string_view bytes);
  /// Checks the size, fsyncs and closes.
  void close();
  uint64_t size() const { return size_; }         ///< bytes written so far
  int descriptor() const { return file_.get(); }  ///< for attributes; -1 once it is closed

  /// Locks the file (flock) for as long as the returned descriptor, or this object, is open: the
  /// sign that its process lives. Where a file system knows no locks it is not locked.
  /// @return no descriptor when another process has the lock or has removed the file
  Descriptor claim() const;

 private:
  [[noreturn]] void fail(std::string_view action, int errno_value) const;

  std::filesystem::path path_;
  std::string failpoints_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace stretto
