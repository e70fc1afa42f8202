#include "base/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failpoint.h"
#include "base/file.h"

namespace stretto {
namespace {

// Linux takes at most 2 GiB - 4 KiB in one call; smaller pieces keep the dirty page cache moving.
constexpr size_t kMaxWriteBytes = size_t{64} << 20;

}  // namespace

DurableFile::DurableFile(std::filesystem::path path, std::string failpoints)
    : path_(std::move(path)), failpoints_(std::move(failpoints)) {
  do {
    if (const int fault = failpoint(failpoints_ + ".open")) {
      errno = fault;
    } else {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail("cannot create", errno);
}

DurableFile::~DurableFile() {
  if (fd_ >= 0) ::close(fd_);
}

void DurableFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kMaxWriteBytes);
    const int fault = failpoint(failpoints_ + ".write", count);
    ssize_t written = -1;
    if (fault != 0) {
      errno = fault;
    } else {
      written = ::write(fd_, bytes.data(), count);
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write", errno);
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void DurableFile::close() {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("cannot stat", errno);
  if (static_cast<uint64_t>(status.st_size) != size_) fail("lost bytes of", EIO);
  if (const int fault = failpoint(failpoints_ + ".fsync")) fail("cannot fsync", fault);
  if (::fsync(fd_) != 0) fail("cannot fsync", errno);
  // Linux frees the descriptor even when close fails, so it is never closed twice.
  const int fd = std::exchange(fd_, -1);
  const int fault = failpoint(failpoints_ + ".close");
  if (::close(fd) != 0 && errno != EINTR) fail("cannot close", errno);
  if (fault != 0 && fault != EINTR) fail("cannot close", fault);
}

void DurableFile::fail(std::string_view action, int errno_value) const {
  throw_io_error(action, path_, errno_value);
}

}  // namespace stretto
