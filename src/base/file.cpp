#include "base/file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/text.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

std::string quoted(const fs::path& path) {
  return printable(path.native(), 4096);
}

constexpr size_t kFirstReadBytes = size_t{64} << 10;

[[noreturn]] void throw_too_large(const fs::path& path, size_t max_bytes) {
  throw Error(ExitCode::kBadData, quoted(path) + ": larger than " + human_bytes(max_bytes),
              "this cannot be the file that was meant");
}

}  // namespace

std::string read_file(const fs::path& path, size_t max_bytes) {
  size_t size = 0;
  const Descriptor file = open_to_read(path, &size);
  if (size > max_bytes) throw_too_large(path, max_bytes);
  // Read to the end, not to the size: files in /proc have none, and a file may be growing. One byte
  // more than the size lets the second read see the end.
  std::string bytes(size == 0 ? kFirstReadBytes : size + 1, '\0');
  size_t used = 0;
  while (true) {
    if (used == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t count = retried([&]() -> ssize_t {
      if (const int fault = failpoint("file.read")) {
        errno = fault;
        return -1;
      }
      return ::read(file.get(), bytes.data() + used, bytes.size() - used);
    });
    if (count < 0) throw_io_error("cannot read", path, errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > max_bytes) throw_too_large(path, max_bytes);
  }
  bytes.resize(used);
  return bytes;
}

void fsync_directory(const fs::path& directory) {
  const fs::path target = directory.empty() ? fs::path(".") : directory;
  const Descriptor folder(
      retried([&] { return ::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!folder) throw_io_error("cannot open", target, errno);
  const int synced = retried([&] {
    if (const int fault = failpoint("file.fsync_directory")) {
      errno = fault;
      return -1;
    }
    return ::fsync(folder.get());
  });
  // Some network file systems cannot fsync a folder and say so with EINVAL: nothing more to do.
  if (synced != 0 && errno != EINVAL) throw_io_error("cannot fsync", target, errno);
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (retried([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    throw_io_error("cannot rename", from, errno);
  }
}

bool make_directories(const fs::path& path) {
  const fs::path folder = path.has_filename() ? path : path.parent_path();  // "a/b/" is "a/b"
  if (retried([&] { return ::mkdir(folder.c_str(), 0777); }) == 0) return true;
  const int reason = errno;
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return false;
  if (reason != ENOENT || !folder.has_parent_path() || folder.parent_path() == folder) {
    throw_io_error("cannot create", folder, reason);
  }
  make_directories(folder.parent_path());
  if (retried([&] { return ::mkdir(folder.c_str(), 0777); }) == 0) return true;
  if (errno != EEXIST) throw_io_error("cannot create", folder, errno);
  return false;
}

MappedFile::MappedFile(const fs::path& path) {
  size_t size = 0;
  const Descriptor file = open_to_read(path, &size);
  if (size == 0) return;  // mmap refuses a length of 0
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) throw_io_error("cannot map", path, errno);
  data_ = data;
  size_ = size;
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

void MappedFile::forget(std::string_view part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  // Advice: a system that does not follow it keeps the pages.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
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
