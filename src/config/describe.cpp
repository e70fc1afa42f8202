#include "config/describe.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/every_key.h"
#include "config/paths.h"
#include "config/suggest.h"

namespace stretto::config {
namespace {

// Behind the type of a key.
const char* change_text(Change change) {
  switch (change) {
    case Change::kFixed:
      return "fixed for a run";
    case Change::kFree:
    case Change::kScoring:
      return "may change when a run goes on";
    case Change::kReading:
      return "fixed for a run; eval and infer take another value";
  }
  return "";
}

std::string key_block(const Schema& schema, const Key& key, const std::string& shown) {
  std::string text = "  " + shown + " = " + value_text(key.value) + "\n      " + key.help +
                     "\n      " + type_name(key.value);
  if (const auto range = range_text(key); !range.empty()) text += ", " + range;
  if (!key.meta.unit.empty()) text += ", in " + key.meta.unit;
  text += std::string("; ") + change_text(key.meta.change) + "\n";
  const std::string readers = readers_text(key, schema);
  return readers.empty() ? text : text + "      counts with " + readers + "\n";
}

std::string section_list(const Schema& defaults) {
  std::string text =
      "Sections of a configuration file (`stretto describe SECTION` lists its keys):\n";
  for (const auto& section : defaults.sections) {
    if (section.path.find('.') != std::string::npos) continue;
    text += "  [" + section.path + "]" +
            std::string(12 - std::min<size_t>(11, section.path.size()), ' ') + section.help + "\n";
  }
  for (const auto& list : defaults.lists) {
    if (list.path.find('.') != std::string::npos) continue;
    text += "  [[" + list.path + "]]" +
            std::string(10 - std::min<size_t>(9, list.path.size()), ' ') + list.help + "\n";
  }
  return text +
         "\nBeside them `include = \"base.toml\"` at the top of a file reads another one first.\n";
}

// A part of a switch by its path, "model.encoder.lstm".
const Alternative* find_part(const Schema& defaults, const std::string& path) {
  const Switch* parts = defaults.find_switch(section_above(path));
  if (parts == nullptr) return nullptr;
  for (const auto& part : parts->alternatives) {
    if (part.name == last_name(path)) return &part;
  }
  return nullptr;
}

// The keys of a part that has this key, section or list; nullptr = none.
const Schema* part_with(const Schema& defaults, const std::string& path) {
  for (const auto& parts : defaults.switches) {
    for (const auto& part : parts.alternatives) {
      if (parts.may_have(path) && part.schema->has(path)) return part.schema.get();
    }
  }
  return nullptr;
}

std::string blocks_below(const Schema& schema, const std::string& path) {
  std::string text;
  for (const auto& key : schema.keys) {
    if (!key.path.starts_with(path + ".")) continue;
    text += key_block(schema, key, key.path.substr(path.size() + 1));
  }
  return text;
}

// The header of a section as a file has it.
std::string header(const Schema& schema, const std::string& section) {
  const Section* found = schema.find_section(section);
  return found == nullptr ? "[" + section + "]" : schema.header(*found);
}

// Lists of tables below a section, and how to see their keys.
std::string lists_below(const Schema& schema, const std::string& section) {
  std::string text;
  for (const auto& list : schema.lists) {
    if (!list.path.starts_with(section + ".")) continue;
    text += "\n[[" + list.path + "]]  " + list.help + "; empty by default:\n  stretto describe " +
            list.path + "\n";
  }
  return text;
}

std::string describe_part(const Schema& defaults, const std::string& section,
                          const Alternative& part) {
  if (defaults.find_switch(section)->below.empty()) {
    const std::string own = blocks_below(*part.schema, section);
    std::string text = header(defaults, section) + "  with name = \"" + part.name + "\"\n\n" + own +
                       (own.empty() ? "" : "\n") + "Its sections, beside those of every file:\n";
    for (const auto& inner : part.schema->sections) {
      if (inner.path == section || inner.path.find('.') != std::string::npos) continue;
      text += "  stretto describe " + section + "." + part.name + "." + inner.path + "\n";
    }
    return text;
  }
  return header(defaults, section) + "  with name = \"" + part.name + "\"\n\n" +
         blocks_below(*part.schema, section) + lists_below(*part.schema, section);
}

// What a section of the root is with the other parts of a switch beside it.
std::string other_meanings(const Schema& defaults, const Switch& parts,
                           const std::string& section) {
  std::string text;
  for (const auto& part : parts.alternatives) {
    if (part.name == defaults.chosen(parts) || part.schema->find_section(section) == nullptr) {
      continue;
    }
    if (text.empty()) {
      text = "\nThe keys of " + header(defaults, section) + " depend on " + parts.name_key() +
             "; these are those of " + defaults.chosen(parts) + ":\n";
    }
    text += "  stretto describe " + parts.section + "." + part.name + "." + section + "\n";
  }
  return text;
}

// What else a section may be, and how to see its keys.
std::string other_parts(const Schema& defaults, const std::string& section) {
  std::string text;
  for (const auto& parts : defaults.switches) {
    if (parts.below.empty() && parts.section != section) {
      text += other_meanings(defaults, parts, section);
      continue;
    }
    if (parts.section != section && !parts.section.starts_with(section + ".")) continue;
    text += "\nThe keys of " + header(defaults, parts.section) +
            " depend on its name; these are those of " + defaults.chosen(parts) + ":\n";
    for (const auto& part : parts.alternatives) {
      text += "  stretto describe " + parts.section + "." + part.name + "\n";
    }
  }
  return text;
}

// Whether a key counts while its deciding key has this value, as far as that one decides.
bool counts_with(const Schema& schema, const Key& key, const Key& deciding_key,
                 const std::string& value) {
  return key.readers.empty() ||
         std::any_of(key.readers.begin(), key.readers.end(), [&](const ReadWith& reader) {
           if (reader.deciding_key == deciding_key.path) return reads_with(reader, value);
           const Key* other = schema.find(reader.deciding_key);
           return other == nullptr || counts_with(schema, *other, deciding_key, value);
         });
}

// The keys beside a deciding key that count with this value of it.
std::string section_with(const Schema& schema, const Key& deciding_key, const std::string& value) {
  const std::string section = section_above(deciding_key.path);
  std::string text = header(schema, section) + "  with " + last_name(deciding_key.path) + " = \"" +
                     value + "\"\n\n";
  for (const auto& key : schema.keys) {
    if (!key.path.starts_with(section + ".") || &key == &deciding_key) continue;
    if (!counts_with(schema, key, deciding_key, value)) continue;
    text += key_block(schema, key, key.path.substr(section.size() + 1));
  }
  return text + lists_below(schema, section) + other_parts(schema, section);
}

// A value of a key, and what else counts with it: the keys of the part that it chooses, or those
// beside a key that is called `name` or `type`.
std::string value_block(const FoundKey& found, const std::string& value) {
  const Schema& schema = *found.schema;
  const Key& key = *found.key;
  if (const auto* part = find_part(schema, section_above(key.path) + "." + value);
      part != nullptr && last_name(key.path) == "name") {
    return describe_part(schema, section_above(key.path), *part);
  }
  const std::string text = key_block(schema, key, key.path);
  if (last_name(key.path) != "name" && last_name(key.path) != "type") return text;
  return text + "\n" + section_with(schema, key, value);
}

void erase_all(std::string& text, const std::string& words) {
  for (size_t at = 0; (at = text.find(words, at)) != std::string::npos;) {
    text.erase(at, words.size());
  }
}

/// Keys of which the same is to be said, but for where they stand.
struct KeyGroup {
  std::string text;            ///< of the first
  std::vector<FoundKey> keys;  ///< all, in their order
};

/// @param block  what is said of a key
template <class Block>
std::vector<KeyGroup> alike(const std::vector<FoundKey>& keys, const Block& block) {
  std::vector<KeyGroup> all;
  std::vector<std::string> seen;
  for (const auto& found : keys) {
    const std::string text = block(found);
    const std::string section = section_above(found.key->path);
    std::string said = text;
    erase_all(said, header(*found.schema, section));
    erase_all(said, section + ".");
    const auto same = std::find(seen.begin(), seen.end(), said);
    if (same == seen.end()) {
      seen.push_back(std::move(said));
      all.push_back({text, {found}});
    } else {
      all[static_cast<size_t>(same - seen.begin())].keys.push_back(found);
    }
  }
  return all;
}

// What a word means that is no path: a value of some key (`adamw` of `optim.name`), or the last
// name of one. Empty = neither.
std::string describe_word(const std::vector<FoundKey>& keys, const std::string& name) {
  std::vector<std::string> texts;
  const auto of_value = [&](const FoundKey& found) { return value_block(found, name); };
  for (const auto& one : alike(keys_with_choice(keys, name), of_value)) {
    std::vector<std::string> paths;
    for (const auto& found : one.keys) paths.push_back(found.path);
    texts.push_back("`" + name + "` is a value of " + join(paths, ", ") + "\n\n" + one.text);
  }
  const auto of_key = [](const FoundKey& found) {
    return key_block(*found.schema, *found.key, found.key->path);
  };
  for (const auto& one : alike(keys_called(keys, name), of_key)) {
    std::vector<std::string> sections;
    for (const auto& found : one.keys) sections.push_back(section_above(found.path));
    // Else its first line says all.
    const bool is_in_parts = sections.size() > 1 || one.keys[0].path != one.keys[0].key->path;
    texts.push_back(one.text + (is_in_parts ? "      in " + join(sections, ", ") + "\n" : ""));
  }
  return join(texts, "\n");
}

bool is_name_of_section(const Schema& schema, const std::string& name) {
  const auto is_called = [&](const auto& one) { return last_name(one.path) == name; };
  return std::any_of(schema.sections.begin(), schema.sections.end(), is_called) ||
         std::any_of(schema.lists.begin(), schema.lists.end(), is_called);
}

[[noreturn]] void unknown(const Schema& defaults, const std::vector<FoundKey>& keys,
                          const std::string& name) {
  std::string advice = is_name_of_section(defaults, name) ? "" : other_value_advice(keys, name);
  if (advice.empty()) {
    std::string near = name.find('.') == std::string::npos ? suggest_section(name, defaults) : "";
    const Suggestion meant = suggest_key(name, defaults);
    advice = meant.instead;
    if (near.empty()) near = meant.path;
    if (near.empty() && advice.empty()) near = suggest_section(name, defaults);
    if (near.empty() && advice.empty()) {
      std::vector<std::string> words;
      for (const auto& [schema, key, path] : keys) {
        words.push_back(last_name(path));
        words.insert(words.end(), key->range.choices.begin(), key->range.choices.end());
      }
      near = closest(name, words);
    }
    if (advice.empty()) {
      advice =
          near.empty() ? "`stretto describe` lists the sections" : "did you mean `" + near + "`?";
    }
  }
  throw Error(ExitCode::kUsage, "there is no section, key or component `" + printable(name) + "`",
              advice);
}

// A path that leads through a part: behind "model.encoder.lstm" it is "cell".
struct PathInPart {
  const Switch* parts = nullptr;  ///< nullptr = it leads through none
  const Alternative* part = nullptr;
  std::string rest = {};

  /// As the part's own schema has it.
  std::string in_part() const { return detail::joined(parts->below, rest); }
};

PathInPart path_in_part(const Schema& schema, const std::string& path) {
  for (const auto& parts : schema.switches) {
    for (const auto& part : parts.alternatives) {
      const std::string before = parts.section + "." + part.name + ".";
      if (path.size() > before.size() && path.starts_with(before)) {
        return {&parts, &part, path.substr(before.size())};
      }
    }
  }
  return {};
}

// Whether it is a key, section, list or part, or one inside a part.
bool knows(const Schema& schema, const std::string& path) {
  if (const PathInPart inside = path_in_part(schema, path); inside.parts != nullptr) {
    return knows(*inside.part->schema, inside.in_part());
  }
  return schema.has(path) || find_part(schema, path) != nullptr ||
         part_with(schema, path) != nullptr;
}

std::string sections_of(const Switch& parts, const Alternative& part) {
  std::vector<std::string> names;
  for (const auto& section : part.schema->sections) {
    if (section.path != parts.section) names.push_back(section.path);
  }
  for (const auto& list : part.schema->lists) names.push_back(list.path);
  return join(names, ", ");
}

// What another part of the root has, and this one has not: "task.NAME.loss".
void refuse_of_other_parts(const PathInPart& path) {
  const std::string here = path.parts->section + "." + path.part->name;
  for (const auto& other : path.parts->alternatives) {
    const Schema& theirs = *other.schema;
    if (!knows(theirs, path.rest)) continue;
    const Schema* inside = part_with(theirs, path.rest);
    const bool is_section =
        theirs.find_section(path.rest) != nullptr || theirs.find_list(path.rest) != nullptr ||
        find_part(theirs, path.rest) != nullptr ||
        (inside != nullptr &&
         (inside->find_section(path.rest) != nullptr || inside->find_list(path.rest) != nullptr));
    const std::string section = path.rest.substr(0, path.rest.find('.'));
    const bool has_its_section = !is_section && path.part->schema->find_section(section) != nullptr;
    throw Error(
        ExitCode::kUsage,
        here + " has no " + (is_section ? "section" : "key") + " `" + printable(path.rest) + "`",
        has_its_section
            ? "`stretto describe " + here + "." + section + "` lists the keys of that section"
            : "its sections, beside those of every file: " + sections_of(*path.parts, *path.part));
  }
}

// "task.translation.data.max_tokens": of a part whose sections stand beside its switch.
std::string describe_beside(const Schema& defaults, const PathInPart& path) {
  Schema schema = with_part(defaults, *path.parts, path.part);
  // What the other parts have is no answer here.
  std::erase_if(schema.switches, [](const Switch& parts) { return parts.below.empty(); });
  if (!knows(schema, path.rest)) refuse_of_other_parts(path);
  // The commands that it names are those of this part.
  constexpr std::string_view kCommand = "  stretto describe ";
  const std::string before = path.parts->section + "." + path.part->name + ".";
  std::string text = describe(schema, path.rest);
  for (size_t at = 0; (at = text.find(kCommand, at)) != std::string::npos; at += before.size()) {
    at += kCommand.size();
    text.insert(at, before);
  }
  return text;
}

// "model.encoder.lstm.cell"
std::string describe_below(const PathInPart& path) {
  const Schema& schema = *path.part->schema;
  const std::string name = path.in_part();
  if (knows(schema, name)) return describe(schema, name);
  const std::string here = path.parts->section + "." + path.part->name;
  const std::string near = suggest_key(name, schema).path;
  throw Error(ExitCode::kUsage, here + " has no key `" + printable(path.rest) + "`",
              near.empty()
                  ? "`stretto describe " + here + "` lists its keys"
                  : "did you mean `" + here + near.substr(path.parts->below.size()) + "`?");
}

}  // namespace

std::string describe(const Schema& defaults, const std::string& typed) {
  const std::string name = defaults.without_numbers(typed);
  if (name.empty()) return section_list(defaults);
  for (const auto& list : defaults.lists) {
    const bool is_here = name == list.path || name.starts_with(list.path + ".");
    if (is_here) return describe(*list.entry, name);
  }
  if (const PathInPart path = path_in_part(defaults, name); path.parts != nullptr) {
    return path.parts->below.empty() ? describe_beside(defaults, path) : describe_below(path);
  }
  if (const Key* key = defaults.find(name)) return key_block(defaults, *key, key->path);
  const Section* section = defaults.find_section(name);
  if (const auto* part = find_part(defaults, name)) {
    return describe_part(defaults, section_above(name), *part);
  }
  if (section == nullptr) {
    if (const auto* inside = part_with(defaults, name)) return describe(*inside, name);
    const auto keys = every_key(defaults);
    const std::string text = describe_word(keys, name);
    if (text.empty()) unknown(defaults, keys, name);
    return text;
  }
  const std::string once = section->is_entry ? ", a list of tables: one block for each" : "";
  return defaults.header(*section) + "  " + section->help + once + "\n\n" +
         blocks_below(defaults, name) + lists_below(defaults, name) + other_parts(defaults, name);
}

}  // namespace stretto::config
