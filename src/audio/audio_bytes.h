#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace stretto::audio {

/// The bytes of a sound: an open file, or a part of memory such as a member of an archive.
class AudioBytes {
 public:
  /// Opens a regular file. Throws as open_to_read() does.
  explicit AudioBytes(const std::filesystem::path& path);
  /// A file that is open already. @param name  what messages call it
  AudioBytes(Descriptor file, std::string name);
  /// Bytes that outlive this object.
  AudioBytes(std::string_view bytes, std::string name);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  /// Copies at most `size` bytes from `offset` on. @return how many; fewer only at the end
  /// Throws Error(kIo).
  size_t read_at(uint64_t offset, void* buffer, size_t size) const;

 private:
  std::string name_;
  Descriptor file_;
  std::string_view memory_;
  uint64_t size_ = 0;
};

}  // namespace stretto::audio
