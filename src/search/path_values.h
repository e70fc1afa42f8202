#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "search/search_options.h"

namespace stretto::search {

/// The folder that relative paths of a key of the search file are relative to.
using FolderOf = std::function<std::filesystem::path(const std::string& key)>;

/// Makes relative paths absolute where a search file gives values to keys of the configuration that
/// name files (config::Meta::is_path), whatever part or list these stand in: in `search.overrides`,
/// in `search.points`, and in `values` and `when` of [[space]].
void make_values_absolute(SearchFileOptions& options, const FolderOf& folder_of);

/// The value of such a key, as an override has it, with absolute paths; of another key unchanged.
std::string absolute_value(const std::string& key, const std::string& value,
                           const std::filesystem::path& folder);

/// The value of such a key as points have it, however it was written: one path without quotes, a
/// list as the resolved configuration has it. The value of any other key is unchanged.
std::string canonical_value(const std::string& key, const std::string& value);

/// The words of a point. No space between double quotes ends one: paths may have some.
std::vector<std::string> point_words(const std::string& text);

}  // namespace stretto::search
