#include "config/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace stretto::config {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;  // clang 14 does not deduce aggregates

std::string toml_number(double value) {
  std::string text = number_text(value);
  // TOML tells floats from integers by a point or an exponent.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      static constexpr char kHex[] = "0123456789ABCDEF";
      out += std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T, class Text>
std::string list_text(const std::vector<T>& values, Text text) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? ", " : "") + text(values[i]);
  return out + "]";
}

bool in_range(const Range& range, double value) {
  if (std::isnan(value)) return false;
  if (range.min_open ? value <= range.min : value < range.min) return false;
  return range.max_open ? value < range.max : value <= range.max;
}

bool is_choice(const Range& range, const std::string& value) {
  if (range.choices.empty() || range.open) return true;
  for (const auto& choice : range.choices) {
    if (choice == value) return true;
  }
  return false;
}

bool is_among(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool value_in_range(const Key& key) {
  return std::visit(
      Overloaded{[](const bool*) { return true; },
                 [&](const int64_t* v) { return in_range(key.range, static_cast<double>(*v)); },
                 [&](const double* v) { return std::isfinite(*v) && in_range(key.range, *v); },
                 [&](const std::string* v) { return is_choice(key.range, *v); },
                 [&](const std::vector<std::string>* v) {
                   for (const auto& item : *v) {
                     if (!is_choice(key.range, item)) return false;
                   }
                   return true;
                 },
                 [&](const std::vector<double>* v) {
                   for (const double item : *v) {
                     if (!std::isfinite(item) || !in_range(key.range, item)) return false;
                   }
                   return true;
                 }},
      key.value);
}

}  // namespace

const Key* Schema::find(const std::string& path) const {
  for (const auto& key : keys) {
    if (key.path == path || (!key.former_path.empty() && key.former_path == path)) return &key;
  }
  return nullptr;
}

const RetiredKey* Schema::find_retired(const std::string& path) const {
  for (const auto& key : retired) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

const Section* Schema::find_section(const std::string& path) const {
  for (const auto& section : sections) {
    if (section.path == path) return &section;
  }
  return nullptr;
}

const Switch* Schema::find_switch(const std::string& section) const {
  for (const auto& one : switches) {
    if (one.section == section) return &one;
  }
  return nullptr;
}

const Switch* Schema::root_switch() const {
  for (const auto& one : switches) {
    if (one.below.empty()) return &one;
  }
  return nullptr;
}

const List* Schema::find_list(const std::string& path) const {
  for (const auto& list : lists) {
    if (list.path == path) return &list;
  }
  return nullptr;
}

bool Schema::has(const std::string& path) const {
  if (find(path) != nullptr || find_section(path) != nullptr || find_list(path) != nullptr) {
    return true;
  }
  const List* list = list_above(path);
  if (list == nullptr) return false;
  std::string rest = path.substr(list->path.size() + 1);
  const size_t dot = std::min(rest.find('.'), rest.size());
  if (rest.find_first_not_of("0123456789") >= dot) {
    rest = rest.substr(std::min(dot + 1, rest.size()));  // an entry's number
  }
  return rest.empty() || list->entry->has(list->path + "." + rest);
}

const List* Schema::list_above(const std::string& path) const {
  const List* found = nullptr;
  for (const auto& list : lists) {
    const bool is_below = path.starts_with(list.path + ".");
    if (is_below && (found == nullptr || found->path.size() < list.path.size())) found = &list;
  }
  return found;
}

std::string Schema::without_numbers(const std::string& path) const {
  std::string name;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string word = path.substr(begin, end - begin);
    const bool is_number = begin > 0 && word.find_first_not_of("0123456789") == std::string::npos &&
                           find_list(path.substr(0, begin - 1)) != nullptr;
    if (!is_number) name += (begin > 0 ? "." : "") + word;
    begin = end + 1;
  }
  return name;
}

std::string Schema::header(const Section& section) const {
  const std::string name = without_numbers(section.path);
  return section.is_entry ? "[[" + name + "]]" : "[" + name + "]";
}

const std::string& Schema::chosen(const Switch& section) const {
  return *std::get<std::string*>(find(section.name_key())->value);
}

std::vector<std::string> Schema::other_owners(const std::string& path, const Switch** of) const {
  std::vector<std::string> owners;
  for (const auto& section : switches) {
    if (!section.may_have(path)) continue;
    for (const auto& part : section.alternatives) {
      if (part.name == chosen(section)) continue;
      if (part.schema->has(path)) owners.push_back(part.name);
    }
    if (!owners.empty() && of != nullptr) *of = &section;
    if (!owners.empty()) break;
  }
  return owners;
}

std::vector<Owners> Schema::owners_elsewhere(const std::string& path) const {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {};
  const bool is_beside = find_switch(path.substr(0, dot)) != nullptr;
  std::vector<Owners> found;
  for (const auto& section : switches) {
    const std::string meant = section.below + path.substr(dot);
    if (section.below.empty() || meant == path) continue;
    if (!is_beside && !section.section.starts_with(path.substr(0, dot + 1))) continue;
    Owners owners{&section, {}};
    for (const auto& part : section.alternatives) {
      if (part.schema->find(meant) != nullptr) owners.parts.push_back(part.name);
    }
    if (!owners.parts.empty()) found.push_back(std::move(owners));
  }
  return found;
}

Schema with_part(const Schema& schema, const Switch& parts, const Alternative* part) {
  const std::string& name = schema.chosen(parts);
  const auto chosen = std::find_if(parts.alternatives.begin(), parts.alternatives.end(),
                                   [&](const auto& one) { return one.name == name; });
  Schema others;
  for (const auto& key : schema.keys) {
    if (chosen->schema->find(key.path) == nullptr) others.keys.push_back(key);
  }
  for (const auto& section : schema.sections) {
    const bool has_other_keys =
        std::any_of(others.keys.begin(), others.keys.end(),
                    [&](const Key& key) { return key.path.starts_with(section.path + "."); });
    if (has_other_keys || chosen->schema->find_section(section.path) == nullptr) {
      others.sections.push_back(section);
    }
  }
  for (const auto& inner : schema.switches) {
    if (chosen->schema->find_switch(inner.section) == nullptr) others.switches.push_back(inner);
  }
  for (const auto& list : schema.lists) {
    if (chosen->schema->find_list(list.path) == nullptr) others.lists.push_back(list);
  }
  if (part == nullptr) return others;
  const auto add = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const auto& section : part->schema->sections) detail::add_section(others, section);
  add(others.keys, part->schema->keys);
  add(others.switches, part->schema->switches);
  add(others.lists, part->schema->lists);
  return others;
}

std::string number_text(double value) {
  std::array<char, 400> text{};
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, format);
  std::string out(text.data(), result.ptr);
  // "1e-07" is "1e-7" for people.
  if (const size_t e = out.find('e'); e != std::string::npos && e + 2 < out.size()) {
    if (out[e + 2] == '0') out.erase(e + 2, 1);
    if (out[e + 1] == '+') out.erase(e + 1, 1);
  }
  return out;
}

std::string type_name(const ValuePtr& value) {
  return std::visit(
      Overloaded{[](const bool*) { return "true or false"; },
                 [](const int64_t*) { return "integer"; }, [](const double*) { return "number"; },
                 [](const std::string*) { return "string"; },
                 [](const std::vector<std::string>*) { return "list of strings"; },
                 [](const std::vector<double>*) { return "list of numbers"; }},
      value);
}

std::string value_text(const ValuePtr& value) {
  return std::visit(
      Overloaded{[](const bool* v) { return std::string(*v ? "true" : "false"); },
                 [](const int64_t* v) { return std::to_string(*v); },
                 [](const double* v) { return toml_number(*v); },
                 [](const std::string* v) { return quoted(*v); },
                 [](const std::vector<std::string>* v) { return list_text(*v, quoted); },
                 [](const std::vector<double>* v) { return list_text(*v, toml_number); }},
      value);
}

std::string range_text(const Key& key) {
  const Range& range = key.range;
  if (!range.choices.empty())
    return (range.open ? "such as " : "one of ") + join(range.choices, ", ");
  const bool below = std::isfinite(range.max), above = std::isfinite(range.min);
  if (above && below) {
    return std::string("in ") + (range.min_open ? "(" : "[") + number_text(range.min) + ", " +
           number_text(range.max) + (range.max_open ? ")" : "]");
  }
  if (above) return (range.min_open ? "> " : ">= ") + number_text(range.min);
  if (below) return (range.max_open ? "< " : "<= ") + number_text(range.max);
  return "";
}

std::string range_error(const Key& key) {
  if (value_in_range(key)) return "";
  const std::string allowed = range_text(key);
  return "must be " + (allowed.empty() ? "finite" : allowed) + ", got " + value_text(key.value);
}

std::string key_summary(const Key& key, const Schema& defaults) {
  std::string text = type_name(key.value);
  if (const Key* fallback = defaults.find(key.path)) {
    text += ", default " + value_text(fallback->value);
  }
  if (!key.meta.unit.empty()) text += ", in " + key.meta.unit;
  return text;
}

std::string chosen_value(const Key& deciding_key) {
  const auto of_number = [](double value) {
    return value == 0 ? std::string("0") : number_text(value);  // -0 is one too
  };
  return std::visit(Overloaded{[](const std::string* v) { return *v; },
                               [&](const double* v) { return of_number(*v); },
                               [&](const auto*) { return value_text(deciding_key.value); }},
                    deciding_key.value);
}

bool reads_with(const ReadWith& reader, const std::string& chosen) {
  return reader.values.empty() ? chosen != "0" : is_among(reader.values, chosen);
}

std::string reader_text(const ReadWith& reader, const Schema& schema) {
  if (reader.values.empty()) return reader.deciding_key + " above 0";
  const Key* deciding_key = schema.find(reader.deciding_key);
  const auto& values = reader.values;
  if (deciding_key != nullptr && values.size() > 2 &&
      values.size() + 1 == deciding_key->range.choices.size()) {
    for (const auto& choice : deciding_key->range.choices) {
      if (!is_among(values, choice)) return reader.deciding_key + " = any but " + choice;
    }
  }
  const std::vector<std::string> first(values.begin(), values.end() - 1);
  return reader.deciding_key + " = " + join(first, ", ") + (first.empty() ? "" : " or ") +
         values.back();
}

std::string readers_text(const Key& key, const Schema& schema) {
  std::vector<std::string> texts;
  for (const auto& reader : key.readers) texts.push_back(reader_text(reader, schema));
  return join(texts, ", or with ");
}

}  // namespace stretto::config
