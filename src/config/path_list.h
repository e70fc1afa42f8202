#pragma once

#include <string>
#include <vector>

namespace stretto::config {

/// Files that an entry of a list of paths stands for (Meta::takes_folders, Meta::takes_patterns).
struct PathList {
  std::vector<std::string> files;
  std::string problem = {};  ///< why there are none; empty = there are
};

/// A folder stands for the files that lie in it, and a last name with `*` or `?` for the files that
/// match (base/name_pattern.h): in the order of their names by bytes, without names that begin with
/// a dot, and without what lies in folders below. A range of numbers in the last name,
/// `shard-{000..146}.tar`, stands for all of them, with as many digits as the first, whether they
/// are there or not. Any other path, and a file that is called like a pattern, stands for itself,
/// whether it is there or not.
/// @param path           absolute
/// @param lists_folders  else a folder stands for itself
PathList listed_files(const std::string& path, bool lists_folders = true);

}  // namespace stretto::config
