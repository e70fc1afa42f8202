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

// 0 once the lock is held, else errno.
int lock(const Descriptor& file, int operation) {
  return retried([&] { return ::flock(file.get(), operation); }) == 0 ? 0 : errno;
}

// The command as the user typed it, from /proc; arguments are separated by NUL there.
std::string own_command() {
  std::string command;
  try {
    command = read_file("/proc/self/cmdline", kMaxSmallTextBytes);
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
void write_holder(const Descriptor& file, std::string_view purpose) {
  const std::string text = std::string(purpose) + " (process " + std::to_string(::getpid()) +
                           " on " + host_name() + ", since " + utc_now() + ", command `" +
                           own_command() + "`)\n";
  if (::ftruncate(file.get(), 0) != 0) return;
  [[maybe_unused]] const ssize_t ignored = ::pwrite(file.get(), text.data(), text.size(), 0);
}

std::string read_holder(const Descriptor& file) {
  std::string text(2048, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  text = printable(trim(text), 1000);
  return text.empty() ? "another process" : text;
}

}  // namespace

FileLock FileLock::wait(const std::filesystem::path& path) {
  FileLock held(open_own_file(path, O_RDWR));
  if (const int reason = lock(held.file_, LOCK_EX)) throw_io_error("cannot lock", path, reason);
  write_holder(held.file_, "stretto");
  return held;
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const Descriptor file(
      retried([&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); }));
  // Closing gives the lock back, should this have got it.
  return file && lock(file, LOCK_SH | LOCK_NB) == EWOULDBLOCK;
}

FileLock FileLock::try_now(const std::filesystem::path& path, std::string_view purpose) {
  Descriptor file = open_own_file(path, O_RDWR);
  const int reason = lock(file, LOCK_EX | LOCK_NB);
  if (reason == EWOULDBLOCK) {
    throw Error(ExitCode::kUsage,
                printable(path.native(), 4096) + " is in use by " + read_holder(file),
                "wait until it ends, stop it, or use another folder");
  }
  if (reason != 0) throw_io_error("cannot lock", path, reason);
  FileLock held(std::move(file));
  write_holder(held.file_, purpose);
  return held;
}

FileLock::~FileLock() {
  release();
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this == &other) return *this;
  release();
  file_ = std::move(other.file_);
  return *this;
}

void FileLock::release() {
  if (!file_) return;
  // Emptied while still held, so that the file never names a holder that is gone by choice.
  [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), 0);
  ::flock(file_.get(), LOCK_UN);
  file_.reset();
}

}  // namespace stretto
