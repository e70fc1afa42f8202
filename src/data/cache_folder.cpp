#include "data/cache_folder.h"

#include <unistd.h>

#include <string>
#include <system_error>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

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

void make_cache_directory(const fs::path& path) {
  try {
    make_directories(path);
  } catch (const Error& error) {
    throw Error(ExitCode::kIo, std::string("the token cache: ") + error.what(),
                "set data.cache_dir to a folder where you may write");
  }
}

void build_aside(const fs::path& folder, const std::function<void(const fs::path&)>& build) {
  const fs::path root = folder.parent_path();
  const std::string prefix = ".tmp-" + folder.filename().string();
  remove_stale_builds(root, prefix);
  const fs::path aside = root / (prefix + "-" + std::to_string(::getpid()));
  make_cache_directory(aside);
  try {
    build(aside);
    put_in_place(aside, folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw;
  }
}

}  // namespace stretto::data
