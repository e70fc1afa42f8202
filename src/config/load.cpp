#include "config/load.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "config/path_list.h"
#include "config/shape.h"
#include "config/toml_entries.h"
#include "config/toml_file.h"
#include "config/toml_value.h"
#include "config/unknown_names.h"
#include "config/value_hints.h"

namespace stretto::config {

namespace fs = std::filesystem;

namespace {

/// Puts TOML into the schema's object and notes what is wrong.
class Reader {
 public:
  /// @param wrong_names  see UnknownNames
  Reader(const Schema& schema, const Schema& defaults, std::set<std::string> wrong_names,
         std::vector<Problem>& problems)
      : schema_(schema),
        defaults_(defaults),
        unknown_names_(schema, defaults, std::move(wrong_names), problems),
        problems_(problems) {}

  /// Where a table stands: what its section is called, and what it was called.
  struct Where {
    std::string path, typed;
  };

  void table(const toml::table& table, const Where& section, const fs::path& base,
             const Place& file) {
    for (const auto& [key, node] : by_lines(table)) {
      const std::string name(key->str());
      if (section.path.empty() && name == "include" && file.override_text.empty()) continue;
      if (name.find('.') != std::string::npos) {
        one_name_in_quotes(detail::joined(section.typed, name), at(*key, file));
        continue;
      }
      entry({detail::joined(section.path, name), detail::joined(section.typed, name)}, *node, base,
            at(*key, file));
    }
  }

  void entry(const Where& here, const toml::node& node, const fs::path& base, const Place& place) {
    const auto* section = schema_.find_section(here.path);
    if (const Key* known = schema_.find(here.path)) {
      value(*known, here.path, node, base, place);
    } else if (const RetiredKey* gone = schema_.find_retired(here.path)) {
      retired_value(*gone, node, place);
    } else if (const List* list = schema_.find_list(here.path)) {
      entries(*list, here, node, base, place);
    } else if (section == nullptr) {
      unknown(here.typed, node, base, place);
    } else if (const auto* inner = node.as_table()) {
      table(*inner, here, base, place);
    } else {
      problem(place, "`" + here.typed + "` is a section, got " + value_as_written(node),
              "write " + schema_.header(*section) + " and its keys below it", here.path);
    }
  }

  void entries(const List& list, const Where& here, const toml::node& node, const fs::path& base,
               const Place& place) {
    const std::string blocks = "[[" + schema_.without_numbers(list.path) + "]]";
    if (!place.override_text.empty()) {
      return problem(place, "`" + here.typed + "` is a list of tables, which files alone make",
                     "write a block " + blocks + " for each into the file; " + list.entry_path(0) +
                         ".KEY=VALUE changes one that is there",
                     list.path);
    }
    const auto* tables = node.as_array();
    if (tables == nullptr) {
      return problem(place,
                     "`" + here.typed + "` is a list of tables, got " + value_as_written(node),
                     "write " + blocks + " above the keys of each", list.path);
    }
    if (tables->size() > kMostEntries) {
      problem(at(*tables->get(kMostEntries), place),
              "`" + here.typed + "` has " + std::to_string(tables->size()) + " tables, at most " +
                  std::to_string(kMostEntries) + " are read",
              "leave some " + blocks + " out", list.path);
    }
    origins.set(list.path, place);
    // A list inside a section whose name is a slip was not known when entries were made.
    for (size_t i = 0; i < std::min(tables->size(), list.size); ++i) {
      const std::string typed = here.typed + "." + std::to_string(i);
      const toml::node& item = *tables->get(i);
      origins.set(list.entry_path(i), at(item, place));
      if (const auto* inner = item.as_table()) {
        table(*inner, {list.entry_path(i), typed}, base, at(item, place));
      } else {
        problem(at(item, place), "`" + typed + "` is a table, got " + value_as_written(item),
                "write " + blocks + " and its keys below it", list.entry_path(i));
      }
    }
  }

  /// `optim.name=adamw`
  /// @param number  of the override, from 0
  void override_with(const std::string& text, int number) {
    const Place place{.order = {.source = Order::kCommandLine + number}, .override_text = text};
    const size_t equals = text.find('=');
    const std::string path = trim(text.substr(0, std::min(equals, text.size())));
    if (equals == std::string::npos || path.empty()) {
      return problem(place, "is not section.key=value", "for instance optim.lr=7e-4", text);
    }
    const std::string words = trim(text.substr(equals + 1));
    if (!is_valid_utf8(text) || !is_parsable(words)) {
      return problem(place, "is no TOML value",
                     "values are UTF-8 text, a few brackets deep at the most", path);
    }
    const Key* key = schema_.find(path);
    // A string needs no quotes: whatever stands there is the string.
    const bool quoted = words.starts_with("\"") || words.starts_with("'");
    if (key != nullptr && std::holds_alternative<std::string*>(key->value) && !quoted) {
      return value(*key, path, toml::value<std::string>(words), fs::current_path(), place);
    }
    const toml::parse_result result = toml::parse("v = " + words);
    const auto* node = result && result.table().size() == 1 ? result.table().get("v") : nullptr;
    if (node != nullptr) return entry({path, path}, *node, fs::current_path(), place);
    if (words.starts_with("[") || words.starts_with("{") || quoted) {
      return problem(place, "is no TOML value: " + reason(result),
                     "a list is written key='[\"a\", \"b\"]', a text key='\"a b\"'", path);
    }
    entry({path, path}, toml::value<std::string>(words), fs::current_path(), place);
  }

  Origins origins;

 private:
  static std::string reason(const toml::parse_result& result) {
    return result ? "more than one value" : printable(result.error().description(), 1000);
  }

  template <class Node>
  static Place at(const Node& node, const Place& file) {
    Place place = file;
    if (place.override_text.empty()) {
      place.order.line = static_cast<int>(node.source().begin.line);
      place.order.column = static_cast<int>(node.source().begin.column);
    }
    return place;
  }

  void problem(const Place& place, const std::string& what, const std::string& hint,
               const std::string& key, std::vector<std::string> also = {}) {
    problems_.push_back({place.text(), what, hint, key, place.order, std::move(also)});
  }

  void one_name_in_quotes(const std::string& path, const Place& place) {
    problem(place, "`" + printable(path) + "` has a dot inside quotes",
            "leave the quotes out: keys and sections are joined by dots, no name has one", path);
  }

  void unknown(const std::string& path, const toml::node& node, const fs::path& base,
               const Place& place) {
    const std::string meant = unknown_names_.answer(path, node, place, is_slip_);
    if (meant.empty()) return;
    const bool before = std::exchange(is_slip_, true);
    table(*node.as_table(), {meant, path}, base, place);
    is_slip_ = before;
  }

  /// @param name  the key's path, or the one that it had
  void value(const Key& key, const std::string& name, const toml::node& node, const fs::path& base,
             const Place& place) {
    if (name == key.former_path) note_former(place, "`" + name + "`", "`" + key.path + "`");
    auto* const* text = std::get_if<std::string*>(&key.value);
    const bool names_part = text != nullptr && names_a_part(key);
    const std::string part = names_part ? **text : "";
    checked_value(key, node, base, place);
    if (names_part) **text = part;  // taken before, of all that was stated the last word
  }

  void retired_value(const RetiredKey& key, const toml::node& node, const Place& place) {
    origins.set(key.path, place);
    if (!store(node, key.value)) {
      return problem(place, not_of_type(key.path, key.value, node), "leave it out: " + key.reason,
                     key.path);
    }
    *key.given = true;
    origins.note(place,
                 "`" + key.path + "` is not needed any more: " + key.reason + "; leave it out");
  }

  static std::string not_of_type(const std::string& path, const ValuePtr& wanted,
                                 const toml::node& got) {
    return "`" + path + "` must be " + with_article(type_name(wanted)) + ", got " +
           value_as_written(got);
  }

  void note_former(const Place& place, const std::string& before, const std::string& now) {
    origins.note(place, before + " is now " + now + "; it is still read");
  }

  bool names_a_part(const Key& key) const {
    return std::any_of(schema_.switches.begin(), schema_.switches.end(),
                       [&](const Switch& section) { return section.name_key() == key.path; });
  }

  void checked_value(const Key& key, const toml::node& node, const fs::path& base,
                     const Place& place) {
    origins.set(key.path, place);
    if (!store(node, key.value)) {
      std::string hint = type_hint(key, node, is_quoted(node, place));
      if (!hint.empty()) hint += "; ";
      hint += key.help + " (" + key_summary(key, defaults_) + ")";
      return problem(place, not_of_type(key.path, key.value, node), hint, key.path);
    }
    if (auto* const* text = std::get_if<std::string*>(&key.value);
        text != nullptr && !key.former_value.now.empty() && **text == key.former_value.before) {
      const auto& former = key.former_value;
      note_former(place, "`" + key.path + " = \"" + former.before + "\"`",
                  "`\"" + former.now + "\"`");
      **text = former.now;
    }
    if (const auto wrong = range_error(key); !wrong.empty()) {
      problem(place, "`" + key.path + "` " + wrong, range_hint(key), key.path);
      take_default_number(key);
    }
    if (has_nul(key))
      problem(place, "`" + key.path + "` has a NUL character",
              "remove it: no path and no name has one", key.path);
    if (key.meta.is_path) make_absolute(key, base);
  }

  // Rules compute with the other keys and this one, and what they make of a number that is refused
  // may not fit into its type.
  void take_default_number(const Key& key) const {
    const Key* fallback = defaults_.find(key.path);
    if (fallback == nullptr) return;
    const auto take = [&]<class T>(T* target) {
      auto* const* value = std::get_if<T*>(&fallback->value);
      if (value != nullptr && !std::is_same_v<T, std::string>) *target = **value;
    };
    std::visit(take, key.value);
  }

  // A text on the command line that is no TOML was taken as it stood.
  static bool is_quoted(const toml::node& node, const Place& place) {
    if (!node.is_string() || place.override_text.empty()) return node.is_string();
    const std::string words = trim(place.override_text.substr(place.override_text.find('=') + 1));
    return words.starts_with("\"") || words.starts_with("'");
  }

  static std::string with_article(const std::string& type) {
    if (type.starts_with("true")) return type;
    return (type.starts_with("i") ? "an " : "a ") + type;
  }

  std::string range_hint(const Key& key) const {
    if (const auto* const* text = std::get_if<std::string*>(&key.value)) {
      if (const auto meant = choice_hint(key, **text); !meant.empty()) return meant;
    }
    return key.help + " (" + key_summary(key, defaults_) + ")";
  }

  static bool has_nul(const Key& key) {
    const auto in = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    if (const auto* const* one = std::get_if<std::string*>(&key.value)) return in(**one);
    const auto* const* many = std::get_if<std::vector<std::string>*>(&key.value);
    return many != nullptr && std::any_of((*many)->begin(), (*many)->end(), in);
  }

  static void make_absolute(const Key& key, const fs::path& base) {
    if (auto* const* one = std::get_if<std::string*>(&key.value)) {
      **one = absolute_path(**one, base);
    } else if (auto* const* many = std::get_if<std::vector<std::string>*>(&key.value)) {
      for (auto& path : **many) path = absolute_path(path, base);
      if (key.meta.takes_folders || key.meta.takes_patterns) {
        list_files(**many, key.meta.takes_folders);
      }
    }
  }

  // What stands for no file stays: a later value may replace it, and rules say what is wrong.
  static void list_files(std::vector<std::string>& paths, bool lists_folders) {
    std::vector<std::string> listed;
    for (const auto& path : paths) {
      PathList found = listed_files(path, lists_folders);
      if (!found.problem.empty()) found.files = {path};
      std::move(found.files.begin(), found.files.end(), std::back_inserter(listed));
    }
    paths = std::move(listed);
  }

  const Schema& schema_;
  const Schema& defaults_;
  UnknownNames unknown_names_;
  std::vector<Problem>& problems_;
  bool is_slip_ = false;  ///< inside a section whose name is a slip
};

Origins read_all(const std::vector<TomlFile>& files, const std::vector<std::string>& overrides,
                 Reader& reader) {
  for (const auto& file : files) {
    reader.table(file.table, {}, file.base, {.file = file.shown, .order = {.source = file.number}});
  }
  for (size_t i = 0; i < overrides.size(); ++i) {
    reader.override_with(overrides[i], static_cast<int>(i));
  }
  return std::move(reader.origins);
}

}  // namespace

Origins load_file(const fs::path& path, const std::vector<std::string>& overrides, Schema schema,
                  Schema defaults, std::vector<Problem>& problems,
                  const InheritedValues& inherited) {
  auto files = read_toml_file(path, problems);
  add_inherited(inherited.toml, inherited.name, files, problems);
  auto wrong_names = take_shape(files, overrides, schema, defaults);
  if (defaults.resolve_defaults) defaults.resolve_defaults();
  Reader reader(schema, defaults, std::move(wrong_names), problems);
  return read_all(files, overrides, reader);
}

Origins load_text(std::string_view text, const std::string& where, const fs::path& base,
                  const std::vector<std::string>& overrides, Schema schema, Schema defaults,
                  std::vector<Problem>& problems) {
  auto files = read_toml_text(text, where, base, problems);
  auto wrong_names = take_shape(files, overrides, schema, defaults);
  if (defaults.resolve_defaults) defaults.resolve_defaults();
  Reader reader(schema, defaults, std::move(wrong_names), problems);
  return read_all(files, overrides, reader);
}

std::string absolute_path(const std::string& path, const fs::path& base) {
  if (path.empty()) return path;
  // The member of an archive is a name inside it and no path of this machine.
  const size_t zip = path.find(".zip:");
  const std::string file = zip == std::string::npos ? path : path.substr(0, zip + 4);
  const std::string member = zip == std::string::npos ? "" : path.substr(zip + 4);
  fs::path found(file);
  const char* home = std::getenv("HOME");
  if (file.starts_with("~/") && home != nullptr) found = fs::path(home) / file.substr(2);
  if (found.is_relative()) found = base / found;
  return fs::absolute(found).lexically_normal().string() + member;
}

}  // namespace stretto::config
