#include "base/file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "base/text.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

std::string quoted(const fs::path& path) {
  return printable(path.native(), 4096);
}

// A descriptor for reading that closes itself.
class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) {
    do {
      fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0 && (errno == ENOENT || errno == ENOTDIR)) {
      throw Error(ExitCode::kUsage, quoted(path) + ": no such file",
                  "check the spelling; relative paths start at " +
                      quoted(fs::current_path(ignored_error_)));
    }
    if (fd_ < 0) throw_io_error("cannot open", path, errno);
    if (::fstat(fd_, &status_) != 0) {
      const int reason = errno;
      ::close(fd_);
      throw_io_error("cannot stat", path, reason);
    }
    if (S_ISDIR(status_.st_mode)) {
      ::close(fd_);
      throw Error(ExitCode::kUsage, quoted(path) + ": is a folder, a file is needed",
                  "give the path of a file in it");
    }
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int fd() const { return fd_; }
  bool is_regular() const { return S_ISREG(status_.st_mode); }
  size_t size() const { return static_cast<size_t>(status_.st_size); }

 private:
  int fd_ = -1;
  struct stat status_ {};
  std::error_code ignored_error_;
};

[[noreturn]] void throw_too_large(const fs::path& path, size_t max_bytes) {
  throw Error(ExitCode::kBadData, quoted(path) + ": larger than " + human_bytes(max_bytes),
              "this cannot be the file that was meant");
}

std::string advice_for(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "the disk is full: free some space, or write elsewhere";
    case EDQUOT:
      return "your disk quota is used up: delete something, or write elsewhere";
    case EACCES:
    case EPERM:
      return "check who owns the file and its folder, and their permissions (ls -ld)";
    case EROFS:
      return "the file system is mounted read-only: write elsewhere";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise the limit with `ulimit -n 4096`";
    case EIO:
      return "the disk or the network file system reports a fault: see the kernel log (dmesg)";
    case ENOENT:
    case ENOTDIR:
      return "its folder does not exist: create it, or give another path";
    case EEXIST:
      return "something of that name is already there: move it away, or give another path";
    case ENAMETOOLONG:
      return "use a shorter path";
    default:
      return "look at the path and its folder (ls -ld), and at the kernel log (dmesg)";
  }
}

}  // namespace

std::string read_file(const fs::path& path, size_t max_bytes) {
  const Descriptor file(path);
  if (max_bytes > 0 && file.is_regular() && file.size() > max_bytes) {
    throw_too_large(path, max_bytes);
  }
  // Read to the end, not to the size: pipes and /proc have none, and a file may be growing. One
  // byte more than the size lets the second read see the end.
  std::string bytes(file.is_regular() ? file.size() + 1 : 65536, '\0');
  size_t used = 0;
  while (true) {
    if (used == bytes.size()) bytes.resize(bytes.size() * 2);
    ssize_t count = -1;
    if (const int fault = failpoint("file.read")) {
      errno = fault;
    } else {
      count = ::read(file.fd(), bytes.data() + used, bytes.size() - used);
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error("cannot read", path, errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (max_bytes > 0 && used > max_bytes) throw_too_large(path, max_bytes);
  }
  bytes.resize(used);
  return bytes;
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  static std::atomic<uint64_t> counter = 0;
  fs::path temporary = path;
  temporary += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  // A process with this number may have been killed here earlier.
  ::unlink(temporary.c_str());
  try {
    DurableFile file(temporary, "file");
    file.write(bytes);
    file.close();
    if (const int fault = failpoint("file.rename")) throw_io_error("cannot write", path, fault);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_io_error("cannot write", path, errno);
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  fsync_directory(path.parent_path());
}

void fsync_directory(const fs::path& directory) {
  const fs::path target = directory.empty() ? fs::path(".") : directory;
  if (const int fault = failpoint("file.fsync_directory")) {
    throw_io_error("cannot fsync", target, fault);
  }
  int fd = -1;
  do {
    fd = ::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_io_error("cannot open", target, errno);
  const int reason = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot fsync a folder and say so with EINVAL: nothing more to do.
  if (reason != 0 && reason != EINVAL) throw_io_error("cannot fsync", target, reason);
}

void throw_io_error(std::string_view action, const fs::path& path, int errno_value) {
  throw Error(ExitCode::kIo,
              std::string(action) + " " + quoted(path) + ": " +
                  std::generic_category().message(errno_value),
              advice_for(errno_value));
}

MappedFile::MappedFile(const fs::path& path) {
  const Descriptor file(path);
  if (!file.is_regular()) {
    throw Error(ExitCode::kUsage, quoted(path) + ": is not a regular file",
                "give a plain file, not a pipe or a device");
  }
  if (file.size() == 0) return;  // mmap refuses a length of 0
  void* data = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (data == MAP_FAILED) throw_io_error("cannot map", path, errno);
  data_ = data;
  size_ = file.size();
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<void*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

fs::path user_cache_dir() {
  const auto variable = [](const char* name) -> fs::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const fs::path own = variable("STRETTO_CACHE"); !own.empty()) return fs::absolute(own);
  // The XDG specification says that a relative path is to be ignored.
  if (const fs::path xdg = variable("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "stretto";
  fs::path home = variable("HOME");
  if (home.empty()) {
    const passwd* entry = ::getpwuid(::getuid());
    if (entry != nullptr && entry->pw_dir != nullptr) home = entry->pw_dir;
  }
  if (home.empty()) {
    throw Error(ExitCode::kUsage, "there is no home folder to keep the cache in",
                "set STRETTO_CACHE to a folder, or data.cache_dir in the config");
  }
  return home / ".cache" / "stretto";
}

}  // namespace stretto
