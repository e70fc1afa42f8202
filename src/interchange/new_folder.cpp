#include "interchange/new_folder.h"

#include "base/error.h"
#include "base/file.h"

namespace stretto::interchange {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockName = ".stretto-lock";
constexpr int kMostNames = 100;

/// Without a slash at the end, so that it has a name.
fs::path named(const fs::path& place) {
  const fs::path whole = fs::absolute(place).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

void require_free_place(const fs::path& place) {
  const fs::path folder = named(place);
  const auto status = fs::symlink_status(folder);
  const bool is_empty_folder = fs::is_directory(status) && fs::is_empty(folder);
  if (fs::exists(status) && !is_empty_folder) {
    throw Error(ExitCode::kUsage, place.string() + " is there already",
                "give the name of a new folder, or remove this one");
  }
}

NewFolder::NewFolder(const fs::path& place) : place_(named(place)) {
  require_free_place(place);
  make_directories(place_.parent_path());
  const std::string name = ".tmp-" + place_.filename().string();
  for (int i = 0; i < kMostNames; ++i) {
    if (claim(place_.parent_path() / (i == 0 ? name : name + "-" + std::to_string(i)))) return;
  }
  throw Error(ExitCode::kUsage,
              (place_.parent_path() / name).string() + " and " + std::to_string(kMostNames - 1) +
                  " names like it are taken, and Stretto did not make them",
              "look what they are, and move them away");
}

bool NewFolder::claim(const fs::path& staging) {
  const fs::path lock = staging / kLockName;
  std::error_code error;
  bool is_empty = false;  // a process was killed before it made the lock, or is about to
  if (fs::exists(fs::symlink_status(staging, error))) {
    const bool is_folder = fs::is_directory(fs::symlink_status(staging, error));
    is_empty = is_folder && fs::is_empty(staging, error);
    const bool ours = is_folder && fs::is_regular_file(fs::symlink_status(lock, error));
    if (!ours && !is_empty) return false;
    if (FileLock::is_held(lock)) {
      throw Error(ExitCode::kUsage, "another process writes " + place_.string(),
                  "wait for it, or give another folder");
    }
    if (!is_empty && (fs::remove_all(staging, error), error)) {
      throw_io_error("cannot remove", staging, error.value());
    }
  }
  if (!is_empty && !make_directories(staging)) return false;  // another process was first
  staging_ = staging;
  lock_ = FileLock::try_now(lock, "write " + place_.string());
  return true;
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!is_published_ && !staging_.empty()) fs::remove_all(staging_, ignored);
}

void NewFolder::publish() {
  fsync_directory(staging_);
  rename_path(staging_, place_);
  is_published_ = true;
  std::error_code ignored;
  fs::remove(place_ / kLockName, ignored);
  fsync_directory(place_);
  fsync_directory(place_.parent_path());
}

}  // namespace stretto::interchange
