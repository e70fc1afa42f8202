#include "audio/audio_bytes.h"

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace stretto::audio {

AudioBytes::AudioBytes(const std::filesystem::path& path)
    : AudioBytes(open_to_read(path), path.string()) {}

AudioBytes::AudioBytes(Descriptor file, std::string name)
    : name_(std::move(name)), file_(std::move(file)) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) throw_io_error("cannot look at", name_, errno);
  size_ = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
}

AudioBytes::AudioBytes(std::string_view bytes, std::string name)
    : name_(std::move(name)), memory_(bytes), size_(bytes.size()) {}

size_t AudioBytes::read_at(uint64_t offset, void* buffer, size_t size) const {
  if (offset >= size_) return 0;
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - offset));
  if (!file_) {
    std::memcpy(buffer, memory_.data() + offset, size);
    return size;
  }
  size_t done = 0;
  while (done < size) {
    const ssize_t got = retried([&] {
      return ::pread(file_.get(), static_cast<char*>(buffer) + done, size - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) throw_io_error("cannot read", name_, errno);
    if (got == 0) break;  // it became shorter
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace stretto::audio
