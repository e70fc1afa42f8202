#include "base/atomic_file.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "base/durable_file.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/stray_files.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAccessList = "system.posix_acl_access";

// Where the old file has no list, the new one loses the list that it inherited from its folder.
void copy_access_list(const fs::path& from, int file) {
  const ssize_t size = ::getxattr(from.c_str(), kAccessList, nullptr, 0);
  std::string list(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  if (!list.empty() && ::getxattr(from.c_str(), kAccessList, list.data(), list.size()) == size) {
    ::fsetxattr(file, kAccessList, list.data(), list.size(), 0);
  } else {
    ::fremovexattr(file, kAccessList);
  }
}

}  // namespace

/// The file that is written beside `path` and renamed to it; removed unless keep() was called.
///
/// A lock on it, held as long as this object lives, shows that its process is alive. The second
/// descriptor keeps the lock: it must outlast the close() that makes the file durable, since
/// between that and the rename a process that removes stray files would find this one unlocked.
class AtomicFile::Temporary {
 public:
  explicit Temporary(const fs::path& path) {
    constexpr int kTries = 8;  // a file system that counts no links must not keep us here
    for (int i = 0; i < kTries && !claim_; ++i) create(path);
  }
  ~Temporary() {
    if (!kept_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  DurableFile& file() { return *file_; }
  const fs::path& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  void create(const fs::path& path) {
    static std::atomic<uint64_t> counter = 0;
    path_ = path;
    path_ += temporary_suffix(::getpid(), counter++);
    // A process with this number may have been killed here earlier.
    ::unlink(path_.c_str());
    try {
      file_ = std::make_unique<DurableFile>(path_, "file");
      claim_ = file_->claim();
    } catch (...) {
      ::unlink(path_.c_str());
      throw;
    }
  }

  fs::path path_;
  std::unique_ptr<DurableFile> file_;
  Descriptor claim_;
  bool kept_ = false;
};

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  const std::string own = path_.filename().string();
  remove_stray_files(path_.parent_path(), [&](const std::string& name) { return name == own; });
  temporary_ = std::make_unique<Temporary>(path_);
}

AtomicFile::~AtomicFile() = default;

void AtomicFile::take_attributes_of(const fs::path& other) {
  struct stat status {};
  if (::stat(other.c_str(), &status) != 0) return;
  const int file = temporary_->file().descriptor();
  // Only a member may give a file to a group, and only root to another owner.
  const bool has_owner = ::fchown(file, status.st_uid, status.st_gid) == 0;
  if (!has_owner && ::fchown(file, static_cast<uid_t>(-1), status.st_gid) != 0) errno = 0;
  copy_access_list(other, file);
  ::fchmod(file, status.st_mode & 07777);
}

void AtomicFile::write(std::string_view bytes) {
  temporary_->file().write(bytes);
}

void AtomicFile::write_at(uint64_t offset, std::string_view bytes) {
  temporary_->file().write_at(offset, bytes);
}

void AtomicFile::publish() {
  temporary_->file().close();
  const int renamed = retried([&] {
    if (const int fault = failpoint("file.rename")) {
      errno = fault;
      return -1;
    }
    return ::rename(temporary_->path().c_str(), path_.c_str());
  });
  if (renamed != 0) throw_io_error("cannot write", path_, errno);
  temporary_->keep();
  fsync_directory(path_.parent_path());
}

// Declared in base/file.h, whose own source knows nothing of this one.
void write_file_atomic(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.publish();
}

}  // namespace stretto
