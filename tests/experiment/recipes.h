#pragma once

#include <filesystem>
#include <vector>

namespace stretto::testing {

/// The configurations that come with Stretto and can be run; `source` is the folder of its sources.
inline std::vector<std::filesystem::path> shipped_recipes(const std::filesystem::path& source) {
  std::vector<std::filesystem::path> recipes;
  for (const char* folder : {"configs", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
      const auto& path = entry.path();
      // A model alone and a text alone are parts of recipes.
      const auto holder = path.parent_path().filename();
      const bool is_part = holder == "models" || holder == "parts";
      // A search file names one of them, a grid file says how runs are compressed.
      const bool is_other = path.filename() == "search.toml" || path.filename() == "compress.toml";
      if (path.extension() != ".toml" || is_part || is_other) continue;
      recipes.push_back(path);
    }
  }
  return recipes;
}

}  // namespace stretto::testing
