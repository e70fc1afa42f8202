#include "base/stray_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <string_view>

#include "base/descriptor.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".tmp-";

/// What the name of a temporary file says.
struct StrayName {
  std::string final_name;
  pid_t process = 0;
};

std::optional<StrayName> parse_stray(const std::string& name) {
  const size_t mark = name.rfind(kMark);
  if (mark == std::string::npos || mark == 0) return std::nullopt;
  const char* const end = name.data() + name.size();
  pid_t process = 0;
  uint64_t count = 0;
  const auto first = std::from_chars(name.data() + mark + kMark.size(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, count);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  // Leading zeros and signs are not ours.
  if (name.substr(mark) != temporary_suffix(process, count)) return std::nullopt;
  return StrayName{name.substr(0, mark), process};
}

// For this process's own number only the lock decides: in a container each start has the number of
// the last one.
bool is_another_that_lives(pid_t process) {
  return process != ::getpid() && (process <= 0 || ::kill(process, 0) == 0 || errno != ESRCH);
}

void remove_if_abandoned(const fs::path& path) {
  const Descriptor file(
      retried([&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); }));
  struct stat open_file {};
  struct stat named {};
  if (!file || ::fstat(file.get(), &open_file) != 0) return;
  if (!S_ISREG(open_file.st_mode) || open_file.st_uid != ::geteuid()) return;
  if (retried([&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); }) != 0) return;
  // Its writer may have renamed it meanwhile, and another one begun.
  if (::lstat(path.c_str(), &named) == 0 && named.st_ino == open_file.st_ino) {
    ::unlink(path.c_str());
  }
}

}  // namespace

std::string temporary_suffix(pid_t process, uint64_t count) {
  return std::string(kMark) + std::to_string(process) + "-" + std::to_string(count);
}

void remove_stray_files(const fs::path& folder,
                        const std::function<bool(const std::string&)>& is_own) {
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const auto stray = parse_stray(entry->path().filename().string());
    if (stray && is_own(stray->final_name) && !is_another_that_lives(stray->process)) {
      remove_if_abandoned(entry->path());
    }
  }
}

}  // namespace stretto
