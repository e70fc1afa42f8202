#include "data/store_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr auto kUnusedFor = std::chrono::days(30);

fs::path mark_of(const fs::path& folder, const std::string& kind) {
  return folder / ("opened." + kind);
}

Descriptor open_mark(const fs::path& mark, int flags) {
  constexpr int kNeverElse = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor file(retried([&] { return ::open(mark.c_str(), flags | kNeverElse, 0600); }));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return file;
}

bool is_old(const fs::path& mark) {
  std::error_code failure;
  const auto opened = fs::last_write_time(mark, failure);
  return !failure && opened < fs::file_time_type::clock::now() - kUnusedFor;
}

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

/// Under the lock of those that build it. @return whether it was removed
bool remove_if_unused(const fs::path& folder, const std::string& kind) {
  const FileLock lock = FileLock::try_now(folder.string() + ".lock", "stretto");
  const Descriptor mark = open_mark(mark_of(folder, kind), O_RDWR);
  if (!mark || ::flock(mark.get(), LOCK_EX | LOCK_NB) != 0) return false;
  if (!is_old(mark_of(folder, kind))) return false;  // opened meanwhile
  // As what a killed build left: the next build of this store removes it, should this be killed.
  const fs::path aside = folder.parent_path() /
                         (".tmp-" + folder.filename().string() + "-" + std::to_string(::getpid()));
  rename_path(folder, aside);
  fs::remove_all(aside);
  return true;
}

}  // namespace

void mark_new_store(const fs::path& folder, const std::string& kind) {
  open_mark(mark_of(folder, kind), O_RDWR | O_CREAT);
}

// A mark that is not there is not made: another process may be removing this very folder.
StoreUse::StoreUse(const fs::path& folder, const std::string& kind) {
  const fs::path path = mark_of(folder, kind);
  mark_ = open_mark(path, O_RDWR);
  if (!mark_) mark_ = open_mark(path, O_RDONLY);
  if (!mark_) return;
  is_too_late_ = ::flock(mark_.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!is_too_late_) ::futimens(mark_.get(), nullptr);
}

void remove_unused_stores(const fs::path& root, const std::string& kind) {
  int64_t removed = 0;
  uint64_t bytes = 0;
  std::error_code failure;
  fs::directory_iterator entry(root, failure);
  for (const fs::directory_iterator end; !failure && entry != end; entry.increment(failure)) {
    const fs::path folder = entry->path();
    if (folder.filename().string().starts_with(".") || !is_old(mark_of(folder, kind))) continue;
    try {
      const uint64_t of_folder = bytes_in(folder);
      if (!remove_if_unused(folder, kind)) continue;
      ++removed;
      bytes += of_folder;
    } catch (const Error&) {  // another process has it, or the system refuses
    } catch (const fs::filesystem_error&) {
    }
  }
  if (removed == 0) return;
  const log::SilenceLifted lifted;  // nothing removes them again
  log::info("token cache " + root.string() + ": removed " + counted(removed, "folder") + " of " +
            kind + ", " + human_bytes(bytes) + ", which nothing had opened for 30 days");
}

}  // namespace stretto::data
