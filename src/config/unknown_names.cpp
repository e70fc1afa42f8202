#include "config/unknown_names.h"

#include <algorithm>

#include "base/first_names.h"
#include "base/text.h"
#include "config/suggest.h"
#include "config/toml_entries.h"

namespace stretto::config {
namespace {

// Keys of an unknown section that its one error answers; more have the same cause.
constexpr size_t kMostMoved = 6;

bool names_a_value(const Suggestion& near) {
  return near.note.starts_with("= ");
}

// "`optim.lr`", or with the value that was meant "`train.precision = "mixed_fp16"`"
std::string as_answer(const Suggestion& near) {
  return "`" + near.path + (names_a_value(near) ? " " + near.note : "") + "`";
}

}  // namespace

UnknownNames::UnknownNames(const Schema& schema, const Schema& defaults,
                           std::set<std::string> wrong_names, std::vector<Problem>& problems)
    : schema_(schema),
      defaults_(defaults),
      wrong_names_(std::move(wrong_names)),
      problems_(problems) {}

std::string UnknownNames::answer(const std::string& path, const toml::node& node,
                                 const Place& place, bool is_slip) {
  // Each suggestion costs some time, and those that are not shown help nobody.
  const bool suggests = problems_.size() < kMostProblemsShown;
  if (no_such_entry(path, place)) return "";
  if (is_of_own_parts(path) && of_another_section(path, place)) return "";
  if (of_another_part(path, place, is_slip) || of_another_section(path, place)) return "";
  if (node.is_array_of_tables() && list(path, place, suggests)) return "";
  if (const auto* inner = node.as_table()) return section(path, *inner, place, suggests);
  const Suggestion near = suggests ? suggest_key(path, schema_) : Suggestion{};
  problem(place, "unknown key `" + printable(path) + "`",
          near.path.empty() ? no_key_hint(near, path) : key_hint(near), path, {near.path});
  return "";
}

void UnknownNames::problem(const Place& place, const std::string& what, const std::string& hint,
                           const std::string& key, std::vector<std::string> also) {
  problems_.push_back({place.text(), what, hint, key, place.order, std::move(also)});
}

// Whether parts of the chosen kind of file have a key of this name, and another kind has it here:
// `model.cell` of a translator's LSTM, and of a recogniser.
bool UnknownNames::is_of_own_parts(const std::string& path) const {
  const Switch* section = nullptr;
  const bool is_of_others = !schema_.other_owners(path, &section).empty();
  return is_of_others && section->below.empty() && same_leaf_below(path).empty() &&
         !schema_.owners_elsewhere(path).empty();
}

// A key of another part than the chosen one. Where the name of the part is wrong, its keys are.
bool UnknownNames::of_another_part(const std::string& path, const Place& place, bool is_slip) {
  const Switch* section = nullptr;
  const auto owners = schema_.other_owners(path, &section);
  if (owners.empty()) return false;
  const std::string name_key = section->name_key(), chosen = schema_.chosen(*section);
  if (is_unreliable(problems_, name_key) || wrong_names_.contains(name_key)) return true;
  if (is_slip) return true;  // its name came too late to be taken
  const std::string what =
      "`" + path + "` is a key of " + listed_names(owners) + ", and " + name_key + " is " + chosen;
  // A key of this very section before those below: `model.output_dropout` of a language model's
  // LSTM for `model.dropout`, and not `model.lora.dropout`.
  if (const Suggestion near = suggest_other_name(path, schema_); !near.path.empty()) {
    problem(place, what, key_hint(near), path, {near.path});
    return true;
  }
  const auto meant = same_leaf_below(path);
  if (!meant.empty()) {
    problem(place, what,
            did_you_mean(meant) + " Otherwise set " + name_key + " = \"" + owners.front() + "\"",
            path, meant);
    return true;
  }
  problem(place, what,
          "leave it out, or set " + name_key + " = \"" + owners.front() + "\"; `stretto describe " +
              schema_.without_numbers(section->section) + "." + chosen + "` lists the keys of " +
              chosen,
          path);
  return true;
}

// Keys of this name in the sections below: `model.encoder.num_layers` and
// `model.decoder.num_layers` for `model.num_layers`. Entries of lists do not count.
std::vector<std::string> UnknownNames::same_leaf_below(const std::string& path) const {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {};
  std::vector<std::string> paths;
  for (const auto& key : schema_.keys) {
    const bool is_below =
        key.path.starts_with(path.substr(0, dot + 1)) && key.path.ends_with(path.substr(dot));
    if (is_below && schema_.list_above(key.path) == nullptr) paths.push_back(key.path);
  }
  return paths;
}

// "did you mean `model.encoder.num_layers` or `model.decoder.num_layers`? (integer, default 6)"
std::string UnknownNames::did_you_mean(const std::vector<std::string>& paths) const {
  std::vector<std::string> quoted;
  std::set<std::string> summaries;
  for (const auto& path : paths) {
    quoted.push_back("`" + path + "`");
    summaries.insert(key_summary(*schema_.find(path), defaults_));
  }
  const std::string hint = "did you mean " + join(quoted, " or ") + "?";
  return summaries.size() == 1 ? hint + " (" + *summaries.begin() + ")" : hint;
}

// A key that parts of other sections have, `model.decoder.bidirectional`, or of the sections
// below, `model.bidirectional`. One whose part has it at present was meant, where there is one.
bool UnknownNames::of_another_section(const std::string& path, const Place& place) {
  const auto elsewhere = schema_.owners_elsewhere(path);
  if (elsewhere.empty()) return false;
  const auto has_it = [&](const Owners& owners) {
    return std::find(owners.parts.begin(), owners.parts.end(), schema_.chosen(*owners.section)) !=
           owners.parts.end();
  };
  const auto present = std::find_if(elsewhere.begin(), elsewhere.end(), has_it);
  const Switch& section = *(present == elsewhere.end() ? elsewhere.front() : *present).section;
  const std::string leaf = path.substr(path.rfind('.') + 1), meant = section.section + "." + leaf;
  std::vector<std::string> places;  // those of several entries are told once
  for (const auto& owners : elsewhere) {
    const std::string told =
        listed_names(owners.parts) + " in " + as_header(owners.section->section);
    if (std::find(places.begin(), places.end(), told) == places.end()) places.push_back(told);
  }
  std::string what =
      "`" + printable(path) + "`: `" + leaf + "` is a key of " + join(places, ", and of ");
  if (const auto below = same_leaf_below(path); !below.empty()) {
    problem(place, what, did_you_mean(below), path, below);
    return true;
  }
  if (present != elsewhere.end()) {
    problem(place, what, key_hint({.path = meant, .note = ""}), path, {meant});
    return true;
  }
  const std::string name_key = section.name_key(), part = elsewhere.front().parts.front();
  if (!wrong_names_.contains(name_key)) {
    what += ", and " + name_key + " is " + schema_.chosen(section);
  }
  problem(place, what,
          "leave it out; `stretto describe " + schema_.without_numbers(section.section) + "." +
              part + "` lists the keys of " + part,
          path);
  return true;
}

// `model.encoders.2.name` of two encoders.
bool UnknownNames::no_such_entry(const std::string& path, const Place& place) {
  const List* list = schema_.list_above(path);
  if (list == nullptr) return false;
  const std::string rest = path.substr(list->path.size() + 1);
  const std::string number = rest.substr(0, rest.find('.'));
  if (schema_.find_section(list->path + "." + number) != nullptr) return false;
  const size_t size = list->size;
  std::string known = "there are none";
  if (size == 1) known = "the only one is number 0";
  if (size > 1) known = "they have the numbers 0 to " + std::to_string(size - 1);
  problem(place,
          "there is no entry `" + printable(number) + "` of `" + list->path + "`, which has " +
              std::to_string(size) + (size == 1 ? " entry" : " entries"),
          known + "; a block [[" + schema_.without_numbers(list->path) + "]] in the file adds one",
          path);
  return true;
}

// A section or list as a file names it.
std::string UnknownNames::as_header(const std::string& path) const {
  if (schema_.find_list(path) != nullptr) return "[[" + schema_.without_numbers(path) + "]]";
  const auto* section = schema_.find_section(path);
  return section == nullptr ? path : schema_.header(*section);
}

bool UnknownNames::list(const std::string& path, const Place& place, bool suggests) {
  const std::string near = suggests ? suggest_section(path, schema_) : "";
  if (near.empty()) return false;
  problem(place, "unknown list of tables `" + printable(path) + "`",
          "did you mean `" + as_header(near) + "`?", path, {near});
  return true;
}

// Its keys are answered too: as those of the section that was meant, or one by one.
std::string UnknownNames::section(const std::string& path, const toml::table& inner,
                                  const Place& place, bool suggests) {
  const std::string what = "unknown section `" + printable(path) + "`";
  const std::string near = suggests ? suggest_section(path, schema_) : "";
  if (schema_.find_list(near) != nullptr) {
    problem(place, what, "did you mean `" + as_header(near) + "`?", path, {near});
    return "";
  }
  if (!near.empty()) {
    problem(place, what, "did you mean `" + near + "`?", path);
    return near;
  }
  std::vector<std::string> moved, meant;
  for (const auto& [key, node] : by_lines(inner)) {
    if (!suggests || node->is_table() || moved.size() == kMostMoved) break;
    const std::string name(key->str());
    const auto found = suggest_key(detail::joined(path, name), schema_);
    if (!found.instead.empty()) moved.push_back("`" + printable(name) + "`: " + found.instead);
    if (found.path.empty()) continue;
    moved.push_back("`" + printable(name) + "` is " + (found.is_guess ? "perhaps " : "") +
                    as_answer(found));
    meant.push_back(found.path);
  }
  problem(place, what, moved.empty() ? where_to_look(path) : "of its keys, " + join(moved, ", "),
          path, std::move(meant));
  return "";
}

std::string UnknownNames::key_hint(const Suggestion& near) const {
  const char* mean = near.is_guess ? "perhaps you meant " : "did you mean ";
  std::string hint = mean + as_answer(near) + "?";
  if (!names_a_value(near) && !near.note.empty()) hint += " " + near.note;
  const Key* key = schema_.find(near.path);
  return key == nullptr ? hint : hint + " (" + key_summary(*key, defaults_) + ")";
}

std::string UnknownNames::no_key_hint(const Suggestion& near, const std::string& path) const {
  return near.instead.empty() ? where_to_look(path) : near.instead;
}

std::string UnknownNames::where_to_look(const std::string& path) const {
  const std::string top = path.substr(0, path.find('.'));
  if (schema_.find_section(top) != nullptr) {
    return "`stretto describe " + top + "` lists the keys of that section";
  }
  std::vector<std::string> names;
  for (const auto& section : schema_.sections) {
    if (section.path.find('.') == std::string::npos) names.push_back(section.path);
  }
  return "sections: " + join(names, ", ");
}

}  // namespace stretto::config
