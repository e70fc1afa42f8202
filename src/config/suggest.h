#pragma once

#include <string>

#include "config/schema.h"

namespace stretto::config {

/// A key that may have been meant.
struct Suggestion {
  std::string path;  ///< empty = none is near
  std::string note;  ///< of the name that was typed, see OtherName; mostly empty
  /// Where no key does what was typed (ForeignOption): what to do instead.
  std::string instead = {};
  /// Spelling alone led to the key: another one may have been meant.
  bool is_guess = false;
};

/// The key that was most likely meant by `path`.
///
/// Looks at spelling (edit distance, case, hyphens, order of words, words left out), at keys of the
/// same name in other sections, at section and key in one word (`eval_every`), and at the names
/// that other toolkits use (`Key::other_names`, `Schema::foreign`). What is written there is known,
/// and spelling is not asked.
Suggestion suggest_key(const std::string& path, const Schema& schema);

/// The key of the same section that goes by this very name elsewhere, and does not choose its part;
/// empty = there is none.
Suggestion suggest_other_name(const std::string& path, const Schema& schema);

/// The same for the name of a section or list of tables; empty = none is near.
std::string suggest_section(const std::string& path, const Schema& schema);

}  // namespace stretto::config
