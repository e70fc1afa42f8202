#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/schema.h"

namespace stretto::config {

/// Values of keys that no file and no override gives: those of something else, such as another run.
/// A list of tables is one value. Such a key is Origins::taken(), not given().
struct InheritedValues {
  std::string toml;  ///< empty = there are none
  std::string name;  ///< where they come from, for messages
};

/// Reads a TOML file with its includes, then the overrides, into the object behind `schema`.
///
/// `include = "base.toml"` (or a list) at the top of a file reads those first, relative to that
/// file; later values win. Relative values of path keys become absolute: relative to the file that
/// states them, or to the working folder for overrides; `~/` is the home folder. Folders and
/// patterns become the files that they stand for (Meta::takes_folders, takes_patterns). An override
/// is `section.key=value` with a TOML value, where strings need no quotes and a list of one no
/// brackets.
///
/// A key or a value by a name that it had (`formerly`, `value_formerly` of config/field.h) is read,
/// and makes a note in the Origins; so is a key that is gone (`retired`).
///
/// Everything that is wrong is collected in `problems`, files that are missing, too large (1 MiB),
/// nested too deeply (16 tables) or no TOML too; it throws only Error(kIo). A section whose name is
/// a slip is one problem: its keys are read as those of the section that was meant.
///
/// Sections that are one of several parts (config/choice.h) take theirs first, wherever the key
/// `name` stands; both schemas are invalid then, and the caller binds its objects again.
Origins load_file(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                  Schema schema, Schema defaults, std::vector<Problem>& problems,
                  const InheritedValues& inherited = {});

/// The same for text in memory; `where` names it in messages, paths are relative to `base`.
Origins load_text(std::string_view text, const std::string& where,
                  const std::filesystem::path& base, const std::vector<std::string>& overrides,
                  Schema schema, Schema defaults, std::vector<Problem>& problems);

/// The path of a key, `FILE.zip:MEMBER` too, made absolute; "" stays "".
std::string absolute_path(const std::string& path, const std::filesystem::path& base);

}  // namespace stretto::config
