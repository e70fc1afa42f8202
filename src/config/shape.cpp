#include "config/shape.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace stretto::config {
namespace {

constexpr int kDeepestOverride = 16;

// What stands at a dotted path, whose numbers are places in lists; nullptr = nothing.
const toml::node* node_at(const toml::table& from, const std::string& path) {
  const toml::node* node = &from;
  for (const auto& name : split(path, '.')) {
    if (const auto* table = node->as_table()) {
      node = table->get(name);
    } else if (const auto* list = node->as_array()) {
      size_t number = 0;
      const char* const end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data(), end, number);
      node = error == std::errc() && stop == end ? list->get(number) : nullptr;
    } else {
      node = nullptr;
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

void remove_at(toml::table& from, const std::string& path) {
  auto names = split(path, '.');
  const std::string leaf = names.back();
  names.pop_back();
  toml::table* table = &from;
  for (const auto& name : names) {
    auto* inner = table->get(name);
    table = inner == nullptr ? nullptr : inner->as_table();
    if (table == nullptr) return;
  }
  table->erase(leaf);
}

// The text that an override gives to a key: of the key itself, or of a table around it.
std::optional<std::string> text_given(const std::string& override_text, const std::string& path) {
  const size_t equals = override_text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const std::string typed = trim(override_text.substr(0, equals));
  const std::string words = trim(override_text.substr(equals + 1));
  if (typed == path) {
    const bool quoted = words.size() > 1 && words.front() == words.back() &&
                        (words.front() == '"' || words.front() == '\'');
    return quoted ? words.substr(1, words.size() - 2) : words;
  }
  if (typed.empty() || !path.starts_with(typed + ".") || !words.starts_with("{")) {
    return std::nullopt;
  }
  if (!is_parsable(words)) return std::nullopt;
  const toml::parse_result parsed = toml::parse("v = " + words);
  if (!parsed) return std::nullopt;
  const auto* node = node_at(parsed.table(), "v" + path.substr(typed.size()));
  const auto* text = node == nullptr ? nullptr : node->as_string();
  return text == nullptr ? std::nullopt : std::optional(text->get());
}

// What was given for a key of text, in its order: the last one counts.
std::vector<std::string> texts_given(const std::vector<TomlFile>& files,
                                     const std::vector<std::string>& overrides,
                                     const std::string& path) {
  std::vector<std::string> found;
  for (const auto& file : files) {
    const auto* node = node_at(file.table, path);
    const auto* text = node == nullptr ? nullptr : node->as_string();
    if (text != nullptr) found.push_back(text->get());
  }
  for (const auto& override_text : overrides) {
    if (auto text = text_given(override_text, path)) found.push_back(std::move(*text));
  }
  return found;
}

bool has_part(const Switch& section, const std::string& name) {
  return std::any_of(section.alternatives.begin(), section.alternatives.end(),
                     [&](const auto& part) { return part.name == name; });
}

/// @return whether a section took another part, so that the schemas are to be bound again
bool choose_part(const std::vector<TomlFile>& files, const std::vector<std::string>& overrides,
                 const Schema& schema, const Schema& defaults, std::set<std::string>& wrong) {
  for (const auto& section : schema.switches) {
    auto given = texts_given(files, overrides, section.name_key());
    if (!given.empty() && !has_part(section, given.back())) wrong.insert(section.name_key());
    // Where the name is wrong, the keys are those of the part that was there before.
    while (!given.empty() && !has_part(section, given.back())) given.pop_back();
    if (given.empty() || given.back() == schema.chosen(section)) continue;
    section.select(given.back());
    if (const auto* beside = defaults.find_switch(section.section)) beside->select(given.back());
    return true;
  }
  return false;
}

// How many entries the last file that states the list has; the others lose theirs.
std::optional<size_t> entries_given(std::vector<TomlFile>& files, const std::string& path) {
  std::optional<size_t> count;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const auto* node = node_at(file->table, path);
    if (node == nullptr) continue;
    if (count) {
      remove_at(file->table, path);
      continue;
    }
    const auto* list = node->as_array();
    count = list == nullptr ? 0 : std::min(list->size(), kMostEntries);
  }
  return count;
}

/// @param made  lists that have the entries of this reading
/// @return whether a list has other entries now, so that the schemas are to be bound again
bool make_list(std::vector<TomlFile>& files, const Schema& schema, const Schema& defaults,
               std::set<std::string>& made) {
  for (const auto& list : schema.lists) {
    const auto given = entries_given(files, list.path);
    const size_t wanted = given.value_or(list.size);
    const List* beside = defaults.find_list(list.path);
    // What an object had from before is not what was stated.
    const bool is_first = given && made.insert(list.path).second && list.size > 0;
    const bool differs = beside != nullptr && beside->size != wanted;
    if (!is_first && list.size == wanted && !differs) continue;
    if (is_first || list.size != wanted) list.make(wanted);
    if (beside != nullptr) beside->make(wanted);
    return true;
  }
  return false;
}

}  // namespace

std::set<std::string> take_shape(std::vector<TomlFile>& files,
                                 const std::vector<std::string>& overrides, Schema& schema,
                                 Schema& defaults) {
  // One choice or list brings the next, so that each is looked at anew after every change.
  for (std::set<std::string> made;;) {
    std::set<std::string> wrong;
    const bool changed = make_list(files, schema, defaults, made) ||
                         choose_part(files, overrides, schema, defaults, wrong);
    if (!changed) return wrong;
    schema = schema.bound_again();
    defaults = defaults.bound_again();
  }
}

bool is_parsable(const std::string& words) {
  return is_valid_utf8(words) && toml_nesting(words) <= kDeepestOverride;
}

}  // namespace stretto::config
