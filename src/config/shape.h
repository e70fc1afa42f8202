#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/schema.h"
#include "config/toml_file.h"

/// Which keys there are before any of them is read: the parts that sections take, and the entries
/// that lists of tables have.
namespace stretto::config {

/// Gives the objects behind both schemas the parts and the numbers of entries that were stated, the
/// last statement of each, and binds the schemas again. Names of parts may stand in files and on
/// the command line, entries of lists in files alone. A part may have parts and lists itself, and
/// so may an entry.
///
/// A list that a later file states replaces the one before as a whole, which is removed from
/// `files`. Where there are more than kMostEntries entries, the first ones count; what is no list
/// is empty.
///
/// @return the keys that name a part that there is not; their sections keep the part that they had
std::set<std::string> take_shape(std::vector<TomlFile>& files,
                                 const std::vector<std::string>& overrides, Schema& schema,
                                 Schema& defaults);

/// Whether the value of an override may be handed to the parser: UTF-8, and no deeper than its
/// recursion bears.
bool is_parsable(const std::string& words);

}  // namespace stretto::config
