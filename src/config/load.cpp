#include "config/load.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "config/suggest.h"
#include "config/toml_file.h"

namespace stretto::config {

namespace fs = std::filesystem;

namespace {

// More problems than this have one cause, which the first of them show.
constexpr size_t kMaxShown = 50;

bool store(const toml::node& node, bool& target) {
  const auto* value = node.as_boolean();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool store(const toml::node& node, int64_t& target) {
  const auto* value = node.as_integer();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

// An integer is a number; a number is no integer.
bool store(const toml::node& node, double& target) {
  if (const auto* integer = node.as_integer()) {
    target = static_cast<double>(integer->get());
    return true;
  }
  const auto* value = node.as_floating_point();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

bool store(const toml::node& node, std::string& target) {
  const auto* value = node.as_string();
  if (value != nullptr) target = value->get();
  return value != nullptr;
}

// A single value stands for a list of one.
template <class T>
bool store(const toml::node& node, std::vector<T>& target) {
  std::vector<T> items;
  T item{};
  if (const auto* array = node.as_array()) {
    for (const auto& element : *array) {
      if (!store(element, item)) return false;
      items.push_back(item);
    }
  } else {
    if (!store(node, item)) return false;
    items.push_back(item);
  }
  target = std::move(items);
  return true;
}

// The value as it was written, for messages.
std::string got(const toml::node& node) {
  if (const auto* text = node.as_string())
    return "the string \"" + printable(text->get(), 60) + "\"";
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return "the integer " + std::to_string(value->get());
  if (const auto* value = node.as_floating_point())
    return "the number " + number_text(value->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or time";
}

std::string remedy_for_type(const Key& key, const toml::node& node) {
  const auto* number = node.as_floating_point();
  if (std::holds_alternative<int64_t*>(key.value) && number != nullptr &&
      std::abs(number->get()) < 1e15 && number->get() == std::floor(number->get())) {
    return "write " + std::to_string(static_cast<int64_t>(number->get()));
  }
  if (std::holds_alternative<std::string*>(key.value) && !node.is_table() && !node.is_array()) {
    return "put it in quotes";
  }
  const auto* text = node.as_string();
  if (text != nullptr && !std::holds_alternative<std::vector<std::string>*>(key.value)) {
    const bool word = text->get() == "true" || text->get() == "false";
    const bool is_bool = std::holds_alternative<bool*>(key.value);
    const bool digits = text->get().find_first_of("0123456789") == 0;
    if (is_bool ? word : digits) return "leave the quotes out";
  }
  return "";
}

/// Puts TOML into the schema's object and notes what is wrong.
class Reader {
 public:
  Reader(const Schema& schema, const Schema& defaults, std::vector<Problem>& problems)
      : schema_(schema), defaults_(defaults), problems_(problems) {}

  void table(const toml::table& table, const std::string& path, const fs::path& base,
             const Place& file) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (path.empty() && name == "include" && file.override_text.empty()) continue;
      const std::string here = detail::joined(path, name);
      entry(here, node, base, at(key, file));
    }
  }

  void entry(const std::string& path, const toml::node& node, const fs::path& base,
             const Place& place) {
    const Section* section = schema_.find_section(path);
    if (const Key* known = schema_.find(path)) {
      value(*known, node, base, place);
    } else if (section == nullptr) {
      unknown(path, node, place);
    } else if (const auto* inner = node.as_table()) {
      table(*inner, path, base, place);
    } else {
      problem(place, "`" + path + "` is a section, got " + got(node),
              "write [" + path + "] and its keys below it", path);
    }
  }

  /// `optim.name=adamw`
  void override_with(const std::string& text) {
    const Place place{.override_text = text};
    const size_t equals = text.find('=');
    const std::string path = trim(text.substr(0, std::min(equals, text.size())));
    if (equals == std::string::npos || path.empty()) {
      return problem(place, "is not section.key=value", "for instance optim.lr=7e-4", text);
    }
    const std::string words = trim(text.substr(equals + 1));
    if (!is_valid_utf8(text) || toml_nesting(words) > 16) {
      return problem(place, "is no TOML value",
                     "values are UTF-8 text, a few brackets deep at the most", path);
    }
    const Key* key = schema_.find(path);
    // A string needs no quotes: whatever stands there is the string.
    const bool quoted = words.starts_with("\"") || words.starts_with("'");
    if (key != nullptr && std::holds_alternative<std::string*>(key->value) && !quoted) {
      return value(*key, toml::value<std::string>(words), fs::current_path(), place);
    }
    const toml::parse_result result = toml::parse("v = " + words);
    const auto* node = result && result.table().size() == 1 ? result.table().get("v") : nullptr;
    if (node != nullptr) return entry(path, *node, fs::current_path(), place);
    if (words.starts_with("[") || words.starts_with("{") || quoted) {
      return problem(place, "is no TOML value: " + reason(result),
                     "a list is written key='[\"a\", \"b\"]', a text key='\"a b\"'", path);
    }
    entry(path, toml::value<std::string>(words), fs::current_path(), place);
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
      place.line = static_cast<int>(node.source().begin.line);
      place.column = static_cast<int>(node.source().begin.column);
    }
    return place;
  }

  void problem(const Place& place, const std::string& what, const std::string& hint,
               const std::string& key) {
    problems_.push_back({place.text(), what, hint, key});
  }

  void unknown(const std::string& path, const toml::node& node, const Place& place) {
    const bool is_table = node.is_table();
    std::string near;
    if (problems_.size() < kMaxShown) {
      near = is_table ? suggest_section(path, schema_) : suggest_key(path, schema_);
    }
    const std::string top = path.substr(0, path.find('.'));
    std::string hint;
    if (!near.empty()) {
      hint = "did you mean `" + near + "`?";
      if (const Key* key = schema_.find(near)) hint += " (" + key_summary(*key, defaults_) + ")";
    } else if (schema_.find_section(top) != nullptr) {
      hint = "`stretto describe " + top + "` lists the keys of that section";
    } else {
      hint = "sections: " + join(top_sections(), ", ");
    }
    problem(place,
            std::string("unknown ") + (is_table ? "section" : "key") + " `" + printable(path) + "`",
            hint, path);
  }

  std::vector<std::string> top_sections() const {
    std::vector<std::string> names;
    for (const auto& section : schema_.sections) {
      if (section.path.find('.') == std::string::npos) names.push_back(section.path);
    }
    return names;
  }

  void value(const Key& key, const toml::node& node, const fs::path& base, const Place& place) {
    origins.set(key.path, place);
    if (!std::visit([&](auto* target) { return store(node, *target); }, key.value)) {
      std::string hint = remedy_for_type(key, node);
      if (!hint.empty()) hint += "; ";
      hint += key.help + " (" + key_summary(key, defaults_) + ")";
      return problem(
          place,
          "`" + key.path + "` must be " + with_article(type_name(key.value)) + ", got " + got(node),
          hint, key.path);
    }
    if (const auto wrong = range_error(key); !wrong.empty()) {
      problem(place, "`" + key.path + "` " + wrong, range_hint(key), key.path);
    }
    if (has_nul(key))
      problem(place, "`" + key.path + "` has a NUL character",
              "remove it: no path and no name has one", key.path);
    if (key.meta.is_path) make_absolute(key, base);
  }

  static std::string with_article(const std::string& type) {
    if (type.starts_with("true")) return type;
    return (type.starts_with("i") ? "an " : "a ") + type;
  }

  std::string range_hint(const Key& key) const {
    if (const auto* const* text = std::get_if<std::string*>(&key.value)) {
      const auto near = closest(**text, key.range.choices);
      if (!near.empty()) return "did you mean \"" + near + "\"?";
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
    }
  }

  const Schema& schema_;
  const Schema& defaults_;
  std::vector<Problem>& problems_;
};

Origins read_all(const std::vector<TomlFile>& files, const std::vector<std::string>& overrides,
                 Reader& reader) {
  for (const auto& file : files) reader.table(file.table, "", file.base, {.file = file.shown});
  for (const auto& text : overrides) reader.override_with(text);
  return std::move(reader.origins);
}

}  // namespace

std::string Place::text() const {
  if (!override_text.empty()) return "command line, `" + printable(override_text) + "`";
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

bool Origins::overridden(const std::string& key) const {
  const auto found = places_.find(key);
  return found != places_.end() && !found->second.override_text.empty();
}

std::string Origins::of(const std::string& key) const {
  const auto found = places_.find(key);
  if (found == places_.end()) return "`" + key + "` (default)";
  return found->second.text() + ": `" + key + "`";
}

void throw_problems(const std::vector<Problem>& problems) {
  if (problems.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kMaxShown); ++i) {
    const auto& problem = problems[i];
    if (!text.empty()) text += "\nerror: ";
    text += (problem.place.empty() ? "" : problem.place + ": ") + problem.what;
    if (!problem.hint.empty()) text += "\n  " + problem.hint;
  }
  if (problems.size() > 1) text += "\n" + std::to_string(problems.size()) + " errors";
  if (problems.size() > kMaxShown)
    text += ", the first " + std::to_string(kMaxShown) + " are above";
  throw Error(ExitCode::kUsage, text);
}

Origins load_file(const fs::path& path, const std::vector<std::string>& overrides,
                  const Schema& schema, const Schema& defaults, std::vector<Problem>& problems) {
  const auto files = read_toml_file(path, problems);
  Reader reader(schema, defaults, problems);
  return read_all(files, overrides, reader);
}

Origins load_text(std::string_view text, const std::string& where, const fs::path& base,
                  const std::vector<std::string>& overrides, const Schema& schema,
                  const Schema& defaults, std::vector<Problem>& problems) {
  const auto files = read_toml_text(text, where, base, problems);
  Reader reader(schema, defaults, problems);
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
