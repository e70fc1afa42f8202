#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>

namespace stretto {

/// What a system call gives once no signal interrupts it: `call` is repeated while it returns -1
/// with EINTR. Not for close(2), which frees the descriptor even then.
template <class Call>
auto retried(Call call) -> decltype(call()) {
  decltype(call()) result{};
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

/// The number of an open file, closed on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// Opens a regular file for reading. A pipe, a device or a socket is refused before it is opened,
/// so that no process waits for its other side or reads it forever; links are followed.
///
/// @param size  when not null: bytes that the file has now (files in /proc say 0)
/// Throws Error(kUsage) when it does not exist or is no regular file, Error(kIo) when it cannot be
/// opened.
Descriptor open_to_read(const std::filesystem::path& path, size_t* size = nullptr);

/// Opens a file that belongs to Stretto (a lock, a log) for writing, and makes it when it is not
/// there. Never through a symbolic link, which would let another's file be emptied or appended to.
///
/// @param flags  O_WRONLY or O_RDWR, with O_APPEND or not
/// Throws Error(kUsage) for a link and for all that is no regular file, Error(kIo) with the
/// system's reason else.
Descriptor open_own_file(const std::filesystem::path& path, int flags);

/// "a folder", "a pipe", "a device", …: what stands at a path where a regular file should.
std::string kind_of(mode_t mode);

}  // namespace stretto
