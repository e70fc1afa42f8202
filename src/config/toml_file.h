#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/toml.h"

namespace stretto::config {

/// One TOML text that was read.
struct TomlFile {
  std::string shown;           ///< its name in messages
  std::filesystem::path base;  ///< what its relative paths are relative to
  toml::table table;
  int number = 0;  ///< in the order in which files were opened: a file before what it includes
};

/// A file and what it includes, in the order in which values count: included ones first. Files that
/// are missing, too large, nested too deeply, no TOML, or include themselves add to `problems` and
/// are left out.
std::vector<TomlFile> read_toml_file(const std::filesystem::path& path,
                                     std::vector<Problem>& problems);

/// The same for text in memory.
std::vector<TomlFile> read_toml_text(std::string_view text, const std::string& shown,
                                     const std::filesystem::path& base,
                                     std::vector<Problem>& problems);

/// Puts a text, unless it is empty, below files that were read: its values have Order::kTaken.
void add_inherited(std::string_view text, const std::string& shown, std::vector<TomlFile>& files,
                   std::vector<Problem>& problems);

/// Deepest nesting of brackets and dotted keys anywhere in the text, without parsing it: toml++
/// keeps tables in tables and frees them by recursion, so that depth has to be bounded before it.
int toml_nesting(std::string_view text);

}  // namespace stretto::config
