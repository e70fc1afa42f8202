#include "launcher/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "base/descriptor.h"
#include "base/error.h"

namespace stretto::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "stretto_job_";
constexpr const char* kLockName = "launcher";
constexpr const char* kSharedMemory = "/dev/shm";
// Between making its lock and holding it a launcher of now looks like one that has ended.
constexpr time_t kYoungest = 60;

fs::path temporary_folder() {
  std::error_code problem;
  fs::path path = fs::temp_directory_path(problem);
  if (!problem) return path;
  const char* wish = std::getenv("TMPDIR");
  throw Error(
      ExitCode::kIo,
      (wish == nullptr ? std::string("/tmp") : "TMPDIR=" + std::string(wish)) + " is not a folder",
      "set TMPDIR to a folder that can be written to");
}

bool is_own_folder(const fs::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid();
}

// A lock goes with the process that holds it, however that ends, and no number is used again.
bool launcher_has_ended(const fs::path& folder) {
  const int lock = retried(
      [&] { return ::open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW); });
  if (lock < 0) return false;
  struct stat found {};
  const bool ended = ::fstat(lock, &found) == 0 && ::time(nullptr) - found.st_mtime > kYoungest &&
                     retried([&] { return ::flock(lock, LOCK_EX | LOCK_NB); }) == 0;
  ::close(lock);
  return ended;
}

// Removes the folders that JobFolder made there for this user and whose launcher has ended.
void remove_stale_job_folders(const fs::path& place) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (is_own_folder(entry.path()) && launcher_has_ended(entry.path())) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

JobFolder::JobFolder() : JobFolder(temporary_folder()) {}

JobFolder::JobFolder(const fs::path& place) {
  remove_stale_job_folders(place);
  std::string name = (place / (std::string(kPrefix) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(ExitCode::kIo, "cannot make a folder in " + place.string(),
                "set TMPDIR to a folder that can be written to");
  }
  path_ = name;
  lock_ = retried([&] {
    return ::open((path_ / kLockName).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  });
  // Without it (no room, or a file system that knows no locks) the folder only may stay behind.
  if (lock_ < 0) return;
  const int held = retried([&] { return ::flock(lock_, LOCK_EX | LOCK_NB); });
  if (held != 0) ::unlink((path_ / kLockName).c_str());
}

JobFolder::~JobFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

std::unique_ptr<JobFolder> shared_memory_folder() {
  try {
    return std::make_unique<JobFolder>(kSharedMemory);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace stretto::launcher
