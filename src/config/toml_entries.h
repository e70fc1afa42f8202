#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "config/toml.h"

namespace stretto::config {

using TomlEntry = std::pair<const toml::key*, const toml::node*>;

/// The keys of a table line by line: toml++ sorts them by name.
inline std::vector<TomlEntry> by_lines(const toml::table& table) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
  std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
    return a.first->source().begin < b.first->source().begin;
  });
  return entries;
}

}  // namespace stretto::config
