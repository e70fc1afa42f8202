#include "base/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/io_error.h"
#include "base/text.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Neither waits for the other side of a pipe nor takes a terminal as its own. Regular files know no
// difference.
constexpr int kNeverWait = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::string shown(const fs::path& path) {
  return printable(path.native(), 4096);
}

[[noreturn]] void throw_missing(const fs::path& path) {
  std::error_code ignored;
  throw Error(ExitCode::kUsage, shown(path) + ": no such file",
              "check the spelling; relative paths start at " + shown(fs::current_path(ignored)));
}

[[noreturn]] void throw_not_regular(const fs::path& path, mode_t mode) {
  const bool folder = S_ISDIR(mode);
  throw Error(ExitCode::kUsage,
              shown(path) + ": is " + kind_of(mode) + ", a " + (folder ? "" : "regular ") +
                  "file is needed",
              folder ? "give the path of a file in it"
                     : "write what it gives into a file, and give the path of that");
}

[[noreturn]] void throw_not_own(const fs::path& path, mode_t mode) {
  const bool link = S_ISLNK(mode);
  throw Error(
      ExitCode::kUsage,
      shown(path) + ": is " + kind_of(mode) + ", and Stretto writes to files of its own only",
      std::string("look who put it there, and remove it") +
          (link ? "; a whole run folder may stand behind a link, a file in it may not" : ""));
}

// 0 when nothing can be said.
mode_t mode_of(const fs::path& path, int (*look)(const char*, struct stat*)) {
  struct stat status {};
  return look(path.c_str(), &status) == 0 ? status.st_mode : 0;
}

struct stat status_of(const Descriptor& file, const fs::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_io_error("cannot stat", path, errno);
  return status;
}

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::string kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a file" : "a device";
}

Descriptor open_to_read(const fs::path& path, size_t* size) {
  // Some devices do something when they are opened, so that they are looked at first.
  const mode_t mode = mode_of(path, ::stat);
  if (mode != 0 && !S_ISREG(mode)) throw_not_regular(path, mode);
  Descriptor file(retried([&] { return ::open(path.c_str(), O_RDONLY | kNeverWait); }));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) throw_missing(path);
  if (!file) throw_io_error("cannot open", path, errno);
  const struct stat status = status_of(file, path);
  if (!S_ISREG(status.st_mode)) throw_not_regular(path, status.st_mode);
  if (size != nullptr) *size = static_cast<size_t>(status.st_size);
  return file;
}

Descriptor open_own_file(const fs::path& path, int flags) {
  Descriptor file(retried(
      [&] { return ::open(path.c_str(), flags | O_CREAT | O_NOFOLLOW | kNeverWait, 0666); }));
  if (!file) {
    const int reason = errno;
    const mode_t mode = mode_of(path, ::lstat);
    if (mode != 0 && !S_ISREG(mode)) throw_not_own(path, mode);
    throw_io_error("cannot open", path, reason);
  }
  const struct stat status = status_of(file, path);
  if (!S_ISREG(status.st_mode)) throw_not_own(path, status.st_mode);
  return file;
}

}  // namespace stretto
