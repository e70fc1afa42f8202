#include "base/durable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failpoint.h"
#include "base/io_error.h"

namespace stretto {
namespace {

// Linux takes at most 2 GiB - 4 KiB in one call; smaller chunks keep the dirty page cache moving.
constexpr size_t kMaxWriteBytes = size_t{64} << 20;

// -1 with errno when a test wants the next system call to fail.
int fault_at(const std::string& failpoint_name) {
  const int fault = failpoint(failpoint_name);
  if (fault != 0) errno = fault;
  return fault == 0 ? 0 : -1;
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path, std::string failpoints)
    : path_(std::move(path)), failpoints_(std::move(failpoints)) {
  file_.reset(retried([&] {
    if (fault_at(failpoints_ + ".open") != 0) return -1;
    return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }));
  if (!file_) fail("cannot create", errno);
}

DurableFile::~DurableFile() = default;

void DurableFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retried([&]() -> ssize_t {
      size_t count = std::min(bytes.size(), kMaxWriteBytes);
      if (const int fault = failpoint(failpoints_ + ".write", count)) {
        errno = fault;
        return -1;
      }
      return ::write(file_.get(), bytes.data(), count);
    });
    if (written < 0) fail("cannot write", errno);
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void DurableFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retried([&]() -> ssize_t {
      if (fault_at(failpoints_ + ".write") != 0) return -1;
      return ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (written < 0) fail("cannot write", errno);
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void DurableFile::close() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail("cannot stat", errno);
  if (static_cast<uint64_t>(status.st_size) != size_) fail("lost bytes of", EIO);
  const int synced =
      retried([&] { return fault_at(failpoints_ + ".fsync") != 0 ? -1 : ::fsync(file_.get()); });
  if (synced != 0) fail("cannot fsync", errno);
  // Linux frees the descriptor even when close fails, so it is never closed twice.
  const int fd = file_.release();
  const int fault = failpoint(failpoints_ + ".close");
  if (::close(fd) != 0 && errno != EINTR) fail("cannot close", errno);
  if (fault != 0 && fault != EINTR) fail("cannot close", fault);
}

Descriptor DurableFile::claim() const {
  Descriptor second(retried([&] { return ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0); }));
  if (!second) fail("cannot open twice", errno);
  const int locked = retried([&] { return ::flock(second.get(), LOCK_EX | LOCK_NB); });
  struct stat status {};
  const bool taken = locked != 0 && errno == EWOULDBLOCK;
  if (taken || ::fstat(second.get(), &status) != 0 || status.st_nlink == 0) return {};
  return second;
}

void DurableFile::fail(std::string_view action, int errno_value) const {
  throw_io_error(action, path_, errno_value);
}

}  // namespace stretto
