#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"

namespace stretto::config {

/// Where a value was given.
struct Place {
  std::string file;  ///< empty for the command line
  int line = 0, column = 0;
  std::string override_text;  ///< "optim.lr=1" when it came from the command line

  std::string text() const;  ///< "my.toml:14:1" or "command line, `optim.lr=1`"
};

/// One thing that is wrong with a configuration.
struct Problem {
  std::string place;
  std::string what;
  std::string hint;  ///< may be empty
  std::string key;   ///< whose value cannot be relied on; empty = none
};

/// Places of the keys that were given; the others have their defaults.
class Origins {
 public:
  void set(const std::string& key, Place place) { places_[key] = std::move(place); }
  bool given(const std::string& key) const { return places_.contains(key); }
  /// True when the last word came from the command line.
  bool overridden(const std::string& key) const;
  /// "my.toml:14:1: `optim.lr`", or "`optim.lr` (default)".
  std::string of(const std::string& key) const;

 private:
  std::map<std::string, Place> places_;
};

/// All problems in one Error(kUsage), in order, each with its place and hint; nothing when there
/// are none.
void throw_problems(const std::vector<Problem>& problems);

/// Reads a TOML file with its includes, then the overrides, into the object behind `schema`.
///
/// `include = "base.toml"` (or a list) at the top of a file reads those first, relative to that
/// file; later values win. Relative values of path keys become absolute: relative to the file that
/// states them, or to the working folder for overrides; `~/` is the home folder. An override is
/// `section.key=value` with a TOML value, where strings need no quotes and a list of one no
/// brackets.
///
/// Everything that is wrong is collected in `problems`, files that are missing, too large (1 MiB),
/// nested too deeply (16 tables) or no TOML too; it throws only Error(kIo).
Origins load_file(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                  const Schema& schema, const Schema& defaults, std::vector<Problem>& problems);

/// The same for text in memory; `where` names it in messages, paths are relative to `base`.
Origins load_text(std::string_view text, const std::string& where,
                  const std::filesystem::path& base, const std::vector<std::string>& overrides,
                  const Schema& schema, const Schema& defaults, std::vector<Problem>& problems);

/// The path of a key, `FILE.zip:MEMBER` too, made absolute; "" stays "".
std::string absolute_path(const std::string& path, const std::filesystem::path& base);

}  // namespace stretto::config
