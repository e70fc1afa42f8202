#include "data/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/log_silence.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

// As make_directories(), with rights for this user alone.
void make_private_directories(const fs::path& path) {
  if (retried([&] { return ::mkdir(path.c_str(), 0700); }) == 0) return;
  const int reason = errno;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return make_private(path);
  if (reason != ENOENT || !path.has_parent_path() || path.parent_path() == path) {
    throw_io_error("cannot create", path, reason);
  }
  if (!fs::is_directory(path.parent_path(), ignored)) make_private_directories(path.parent_path());
  if (retried([&] { return ::mkdir(path.c_str(), 0700); }) != 0 && errno != EEXIST) {
    throw_io_error("cannot create", path, errno);
  }
}

void remove_stale_builds(const fs::path& root, const std::string& prefix) {
  for (const auto& entry : fs::directory_iterator(root)) {
    std::error_code ignored;
    if (entry.path().filename().string().starts_with(prefix)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

/// Puts a finished folder in the place of a damaged one, or of none.
void put_in_place(const fs::path& aside, const fs::path& folder) {
  fsync_directory(aside);
  if (const int failed = failpoint("corpus.rename")) throw_io_error("cannot rename", aside, failed);
  std::error_code failure;
  fs::remove_all(folder, failure);
  if (failure) throw_io_error("cannot remove", folder, failure.value());
  rename_path(aside, folder);
  fsync_directory(folder.parent_path());
}

}  // namespace

fs::path open_cache(const std::string& chosen) {
  const fs::path root = chosen.empty() ? user_cache_dir() : fs::path(chosen);
  make_cache_directory(root / "hashes");
  // Where a variable names the folder, it may hold other things for other people.
  if (chosen.empty() && std::getenv("STRETTO_CACHE") == nullptr) make_private(root);
  return root;
}

void make_private(const fs::path& folder) {
  constexpr mode_t kOthers = 077;
  const Descriptor open(
      retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  struct stat status {};
  if (!open || ::fstat(open.get(), &status) != 0 || status.st_uid != ::geteuid()) return;
  // Some file systems know no modes: then there is nothing to take away.
  if ((status.st_mode & kOthers) != 0) ::fchmod(open.get(), 0700);
}

void make_cache_directory(const fs::path& path) {
  in_cache([&] { make_private_directories(path); });
}

void throw_cache_unwritten(const Error& failure) {
  throw Error(ExitCode::kIo, std::string("the token cache: ") + failure.what(), kCacheRemedy);
}

void warn_of_damage(const fs::path& folder) {
  const log::SilenceLifted lifted;  // whoever opens the folder next finds it whole
  log::warn("token cache " + folder.string() + ": is damaged; it is made again from the text");
}

void throw_vanished(const fs::path& folder) {
  throw Error(ExitCode::kIo,
              folder.string() + ": the token cache vanished or was damaged while it was opened",
              "is another program writing there? Set data.cache_dir to another folder, on another "
              "disk");
}

void throw_damaged_in_use(const std::string& folder) {
  throw Error(ExitCode::kIo, "token cache " + folder + ": was damaged while it was used",
              "is another program writing there? Start again: it is made anew from the text");
}

void build_aside(const fs::path& folder, const std::function<void(const fs::path&)>& build) {
  const fs::path root = folder.parent_path();
  const std::string prefix = ".tmp-" + folder.filename().string();
  remove_stale_builds(root, prefix);
  const fs::path aside = root / (prefix + "-" + std::to_string(::getpid()));
  make_cache_directory(aside);
  try {
    build(aside);
    in_cache([&] { put_in_place(aside, folder); });
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
}

}  // namespace stretto::data
