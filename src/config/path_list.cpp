#include "config/path_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
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

/// A range of numbers in a name: what stands before, from, to, and what stands behind.
struct NumberRange {
  std::string before, first, last, behind;
};

bool is_number(const std::string& text) {
  constexpr size_t kMostDigits = 12;
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<NumberRange> range_in(const std::string& name) {
  const size_t begin = name.find('{'),
               dots = name.find("..", begin == std::string::npos ? 0 : begin),
               end = name.find('}', dots == std::string::npos ? 0 : dots);
  if (begin == std::string::npos || dots == std::string::npos || end == std::string::npos)
    return {};
  NumberRange range{.before = name.substr(0, begin),
                    .first = name.substr(begin + 1, dots - begin - 1),
                    .last = name.substr(dots + 2, end - dots - 2),
                    .behind = name.substr(end + 1)};
  if (!is_number(range.first) || !is_number(range.last)) return {};
  return range;
}

PathList files_of(const fs::path& folder, const NumberRange& range) {
  const int64_t first = std::stoll(range.first), last = std::stoll(range.last);
  const std::string name =
      range.before + "{" + range.first + ".." + range.last + "}" + range.behind;
  if (last < first) {
    return {.files = {}, .problem = printable(name) + ": the range ends before it begins"};
  }
  PathList found;
  size_t bytes = 0;
  for (int64_t number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < range.first.size()) {
      digits.insert(0, range.first.size() - digits.size(), '0');
    }
    found.files.push_back((folder / (range.before + digits + range.behind)).string());
    bytes += found.files.back().size();
    if (bytes > kMostBytesOfList) {
      return {.files = {},
              .problem = printable(name) + " stands for more files than a configuration lists"};
    }
  }
  return found;
}

}  // namespace

PathList listed_files(const std::string& path, bool lists_folders) {
  std::error_code ignored;
  const fs::path whole(path);
  const fs::file_status status = fs::status(whole, ignored);
  if (fs::is_directory(status) && !lists_folders) return {.files = {path}};
  if (fs::is_directory(status)) return files_in(whole, "*");
  const std::string name = whole.filename().string();
  const bool is_pattern = name.find_first_of("*?") != std::string::npos;
  const bool is_member = path.find(".zip:") != std::string::npos;
  if (fs::exists(status) || is_member) return {.files = {path}};
  if (const auto range = range_in(name)) return files_of(whole.parent_path(), *range);
  if (!is_pattern) return {.files = {path}};
  return files_in(whole.parent_path(), name);
}

}  // namespace stretto::config
