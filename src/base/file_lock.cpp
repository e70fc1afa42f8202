// FileLock of base/file.h.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/system_info.h"
#include "base/text.h"

namespace stretto {
namespace {

int open_lock_file(const std::filesystem::path& path) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_io_error("cannot open the lock", path, errno);
  return fd;
}

// 0 once the lock is held, else errno.
int lock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// The command as the user typed it, from /proc; arguments are separated by NUL there.
std::string own_command() {
  std::string command;
  try {
    command = read_file("/proc/self/cmdline");
  } catch (const Error&) {
    return "?";
  }
  while (!command.empty() && command.back() == '\0') command.pop_back();
  for (char& c : command) {
    if (c == '\0') c = ' ';
  }
  return printable(command, 400);
}

// For people only, so that a failure to write it is no failure to lock.
void write_holder(int fd, std::string_view purpose) {
  const std::string text = std::string(purpose) + " (process " + std::to_string(::getpid()) +
                           " on " + host_name() + ", since " + utc_now() + ", command `" +
                           own_command() + "`)\n";
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t ignored = ::pwrite(fd, text.data(), text.size(), 0);
}

std::string read_holder(int fd) {
  std::string text(2048, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  text = printable(trim(text), 1000);
  return text.empty() ? "another process" : text;
}

}  // namespace

FileLock FileLock::wait(const std::filesystem::path& path) {
  FileLock held(open_lock_file(path));
  if (const int reason = lock(held.fd_, LOCK_EX)) throw_io_error("cannot lock", path, reason);
  write_holder(held.fd_, "stretto");
  return held;
}

FileLock FileLock::try_now(const std::filesystem::path& path, std::string_view purpose) {
  FileLock held(open_lock_file(path));
  const int reason = lock(held.fd_, LOCK_EX | LOCK_NB);
  if (reason == EWOULDBLOCK) {
    const std::string holder = read_holder(held.fd_);
    ::close(std::exchange(held.fd_, -1));
    throw Error(ExitCode::kUsage, printable(path.native(), 4096) + " is in use by " + holder,
                "wait until it ends, stop it, or use another folder");
  }
  if (reason != 0) throw_io_error("cannot lock", path, reason);
  write_holder(held.fd_, purpose);
  return held;
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // Emptied while still held, so that the file never names a holder that is gone by choice.
  [[maybe_unused]] const int ignored = ::ftruncate(fd_, 0);
  ::flock(fd_, LOCK_UN);
  ::close(fd_);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace stretto
