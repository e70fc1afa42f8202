#include "config/path_list.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/name_pattern.h"
#include "base/text.h"

namespace stretto::config {
namespace {

namespace fs = std::filesystem;

// A configuration that lists the files, such as that of a run folder, has 1 MiB at most.
constexpr size_t kMostBytesOfList = size_t{512} << 10;

PathList files_in(const fs::path& folder, const std::string& pattern) {
  PathList found;
  size_t bytes = 0;
  std::error_code failed, ignored;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(".") || !matches(pattern, name)) continue;
    const std::string full = printable((folder / name).string(), 4096);
    const fs::file_status kind = it->status(ignored);
    if (it->is_symlink(ignored) && !fs::exists(kind)) {
      return {.files = {}, .problem = full + " is a link to what is not there"};
    }
    if (!fs::is_regular_file(kind)) continue;
    if (!is_valid_utf8(name)) {
      return {.files = {}, .problem = full + ": its name is not UTF-8: rename it"};
    }
    found.files.push_back((folder / name).string());
    bytes += found.files.back().size();
  }
  const std::string where = printable(folder.string(), 4096);
  if (failed) return {.files = {}, .problem = "cannot list " + where + ": " + failed.message()};
  if (found.files.empty()) {
    return {.files = {},
            .problem = pattern == "*" ? "no file lies in " + where
                                      : "no file in " + where + " is called " + printable(pattern)};
  }
  if (bytes > kMostBytesOfList) {
    return {.files = {},
            .problem = where + " has " + with_thousands(static_cast<int64_t>(found.files.size())) +
                       " files, more than a configuration lists"};
  }
  std::sort(found.files.begin(), found.files.end());
  return found;
}

}  // namespace

PathList listed_files(const std::string& path) {
  std::error_code ignored;
  const fs::path whole(path);
  const fs::file_status status = fs::status(whole, ignored);
  if (fs::is_directory(status)) return files_in(whole, "*");
  const std::string name = whole.filename().string();
  const bool is_pattern = name.find_first_of("*?") != std::string::npos;
  const bool is_member = path.find(".zip:") != std::string::npos;
  if (fs::exists(status) || !is_pattern || is_member) return {.files = {path}};
  return files_in(whole.parent_path(), name);
}

}  // namespace stretto::config
