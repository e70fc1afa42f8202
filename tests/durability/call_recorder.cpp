// Loaded before a program (LD_PRELOAD), it writes down the calls that make files durable, as the
// system sees them: one line a call, in the file that CALLS_TO names. A failpoint stands before
// such a call and stays when the call is gone; this record does not.
//
//     write PATH · fsync PATH · msync · mkdir PATH · unlink PATH · rename FROM\tTO · exchange A\tB
//
// CALLS_UNDER names a folder: calls elsewhere are not written down. With CALLS_INTERRUPTED=1 every
// second call there fails with EINTR before it has done anything, and is not written down.
#undef _FORTIFY_SOURCE  // it would give some of these names bodies of its own
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string path_of(int fd) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

bool is_watched(const std::string& path) {
  const char* folder = std::getenv("CALLS_UNDER");
  return folder != nullptr && path.compare(0, std::strlen(folder), folder) == 0;
}

// True when this call is to fail: the program has to make it again.
bool interrupted(const std::string& path) {
  static std::atomic<unsigned> calls = 0;
  if (std::getenv("CALLS_INTERRUPTED") == nullptr || !is_watched(path)) return false;
  if (calls++ % 2 != 0) return false;
  errno = EINTR;
  return true;
}

void note(const std::string& call, const std::string& path, const std::string& rest = "") {
  const char* to = std::getenv("CALLS_TO");
  if (to == nullptr || !is_watched(path)) return;
  const std::string line = call + " " + path + rest + "\n";
  const long fd = ::syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return;
  ::syscall(SYS_write, fd, line.data(), line.size());
  ::syscall(SYS_close, fd);
}

int opened(const char* path, int flags, mode_t mode) {
  if (interrupted(path)) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

mode_t mode_argument(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return opened(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_argument(flags, arguments);
  va_end(arguments);
  return opened(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const std::string path = path_of(fd);
  if (interrupted(path)) return -1;
  note("write", path);
  return ::syscall(SYS_write, fd, bytes, size);
}

int fsync(int fd) {
  const std::string path = path_of(fd);
  if (interrupted(path)) return -1;
  note("fsync", path);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (interrupted(path)) return -1;
  note("mkdir", path);
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int unlink(const char* path) noexcept {
  note("unlink", path);
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int flock(int fd, int operation) noexcept {
  if (interrupted(path_of(fd))) return -1;
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

int rename(const char* from, const char* to) noexcept {
  if (interrupted(from)) return -1;
  note("rename", from, std::string("\t") + to);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned int flags) noexcept {
  if (interrupted(from)) return -1;
  note((flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename", from, std::string("\t") + to);
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

}  // extern "C"
