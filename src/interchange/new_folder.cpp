#include "interchange/new_folder.h"

#include "base/error.h"
#include "base/file.h"

namespace stretto::interchange {

namespace fs = std::filesystem;

namespace {

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
  staging_ = place_.parent_path() / (".tmp-" + place_.filename().string());
  make_directories(place_.parent_path());
  lock_path_ = staging_.string() + ".lock";
  if (FileLock::is_held(lock_path_)) {
    throw Error(ExitCode::kUsage, "another process writes " + place.string(),
                "wait for it, or give another folder");
  }
  lock_ = FileLock::try_now(lock_path_, "write " + place.string());
  std::error_code error;
  fs::remove_all(staging_, error);
  if (error) throw_io_error("cannot remove", staging_, error.value());
  make_directories(staging_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!is_published_) fs::remove_all(staging_, ignored);
  fs::remove(lock_path_, ignored);
}

void NewFolder::publish() {
  fsync_directory(staging_);
  rename_path(staging_, place_);
  is_published_ = true;
  fsync_directory(place_.parent_path());
}

}  // namespace stretto::interchange
