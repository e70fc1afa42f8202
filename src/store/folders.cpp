#include "store/folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/failpoint.h"
#include "base/file.h"

namespace stretto::store {

namespace fs = std::filesystem;

namespace {

// The result of `call`, behind the failpoint of its stage.
template <class Call>
int tried(std::string_view stage, Call call) {
  return retried([&] {
    if (const int fault = failpoint(stage)) {
      errno = fault;
      return -1;
    }
    return call();
  });
}

void check(std::string_view stage, std::string_view action, const fs::path& path) {
  if (tried(stage, [] { return 0; }) != 0) throw_io_error(action, path, errno);
}

std::vector<fs::path> entries_of(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_io_error("cannot list", path, error.value());
  }
  return entries;
}

// 0, or the errno of swapping two names at once.
int swap_names(const fs::path& a, const fs::path& b) {
  const int result = tried("checkpoint.exchange", [&] {
    return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  return result == 0 ? 0 : errno;
}

}  // namespace

bool make_folder(const fs::path& path) {
  check("checkpoint.mkdir", "cannot create", path);
  return make_directories(path);
}

void rename_folder(const fs::path& from, const fs::path& to) {
  const int renamed =
      tried("checkpoint.rename", [&] { return ::rename(from.c_str(), to.c_str()); });
  if (renamed != 0) throw_io_error("cannot rename", from, errno);
}

fs::path replace_folder(const fs::path& fresh, const fs::path& target) {
  const int reason = swap_names(fresh, target);
  if (reason == 0) return fresh;
  if (reason != EINVAL && reason != ENOSYS && reason != ENOTSUP) {
    throw_io_error("cannot replace", target, reason);
  }
  const fs::path old = aside(target.parent_path(), kReplacedPrefix, target.filename().string());
  rename_folder(target, old);
  try {
    rename_folder(fresh, target);
  } catch (...) {
    ::rename(old.c_str(), target.c_str());
    throw;
  }
  return old;
}

void restore_replaced(const fs::path& parent, const std::vector<std::string>& names) {
  for (std::string name : names) {
    if (!name.starts_with(kReplacedPrefix)) continue;
    const fs::path path = parent / name;
    if (!fs::exists(fs::symlink_status(path))) continue;  // its process was done meanwhile
    name = name.substr(kReplacedPrefix.size());
    for (int part = 0; part < 2; ++part) name.resize(std::min(name.rfind('-'), name.size()));
    if (fs::exists(parent / name)) {
      remove_folder(path);
    } else {
      rename_folder(path, parent / name);
      sync_folder(parent);
    }
  }
}

void sync_folder(const fs::path& path) {
  check("checkpoint.fsync_folder", "cannot fsync", path);
  fsync_directory(path);
}

void remove_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    for (const fs::path& entry : entries_of(path)) remove_folder(entry);
    check("checkpoint.rmdir", "cannot remove", path);
  } else {
    check("checkpoint.unlink", "cannot remove", path);
  }
  do {
    fs::remove(path, error);
  } while (error == std::errc::interrupted);
  if (error) throw_io_error("cannot remove", path, error.value());
}

void remove_folder(const fs::path& path, std::string_view last) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    for (const fs::path& entry : entries_of(path)) {
      if (entry.filename() != last) remove_folder(entry);
    }
  }
  remove_folder(path);
}

fs::path aside(const fs::path& parent, std::string_view prefix, const std::string& name) {
  static std::atomic<int> count = 0;
  fs::path path;
  do {
    path = parent / (std::string(prefix) + name + "-" + std::to_string(::getpid()) + "-" +
                     std::to_string(count++));
  } while (fs::exists(fs::symlink_status(path)));
  return path;
}

}  // namespace stretto::store
