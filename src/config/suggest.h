#pragma once

#include <string>

#include "config/schema.h"

namespace stretto::config {

/// The key that somebody who wrote `path` most likely meant, or "".
///
/// Looks at spelling (edit distance, case, hyphens, order of words, words left out), at keys of the
/// same name in other sections, and at the names that other toolkits use (`Schema::other_names`).
std::string suggest_key(const std::string& path, const Schema& schema);

/// The same for the name of a section.
std::string suggest_section(const std::string& path, const Schema& schema);

}  // namespace stretto::config
