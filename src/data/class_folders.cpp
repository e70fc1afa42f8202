#include "data/class_folders.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace stretto::data {

size_t shared_folders(const std::set<std::string>& holding, const std::set<std::string>& all) {
  if (holding.empty()) return 0;
  for (size_t depth = 0;; ++depth) {
    const std::string_view shared = folder_at(*holding.begin(), depth);
    const auto lies_below = [&](const std::string& path) {
      return folder_at(path, depth) == shared && !folder_at(path, depth + 1).empty();
    };
    const auto is_other = [&](const std::string& path) {
      const auto folder = folder_at(path, depth);
      return !folder.empty() && folder != shared;
    };
    if (!std::all_of(holding.begin(), holding.end(), lies_below)) return depth;
    if (std::any_of(all.begin(), all.end(), is_other)) return depth;
  }
}

std::string_view folder_at(std::string_view path, size_t depth) {
  for (; depth > 0; --depth) {
    const size_t end = path.find('/');
    if (end == std::string_view::npos) return {};
    path.remove_prefix(end + 1);
  }
  return path.substr(0, path.find('/'));
}

void require_no_sets(const std::set<std::string>& classes, const std::string& where) {
  constexpr std::array<std::string_view, 8> kSets{"train", "training",   "val",  "valid",
                                                  "dev",   "validation", "test", "testing"};
  const auto is_set = [&](const std::string& name) {
    return std::find(kSets.begin(), kSets.end(), name) != kSets.end();
  };
  if (classes.size() < 2 || !std::all_of(classes.begin(), classes.end(), is_set)) return;
  throw Error(ExitCode::kUsage,
              printable(where, 4096) + ": its folders " + *classes.begin() + " and " +
                  *std::next(classes.begin()) + " are sets, not classes",
              "name the folder of one set, such as " +
                  printable(where.substr(0, where.find_last_not_of('/') + 1), 1000) + "/" +
                  *classes.begin() + "; pack each set as an archive of its own");
}

}  // namespace stretto::data
