#pragma once

#include <string>

#include "config/schema.h"

namespace stretto::config {

/// The keys of a section (with the sections below it), one key, the keys of some last name, or a
/// component (a value that some key can have, such as `adamw`) with the keys that count with it,
/// for a terminal. What several parts have alike is listed once. For a list of tables,
/// `model.encoders` or any of its entries, it lists what an entry may have. An empty name lists the
/// sections. Throws Error(kUsage) with a suggestion for an unknown name.
std::string describe(const Schema& defaults, const std::string& name);

/// The whole reference as Markdown: docs/config.md.
std::string reference_markdown(const Schema& defaults);

/// JSON schema (draft-07) of a configuration file, for editors.
std::string json_schema(const Schema& defaults);

}  // namespace stretto::config
