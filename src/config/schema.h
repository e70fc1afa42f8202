#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/choice.h"
#include "config/field.h"
#include "config/open_choice.h"

namespace stretto::config {

/// Where a key's value lives in the struct that it was declared for.
using ValuePtr = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*,
                              std::vector<double>*>;

/// One declared key, bound to one object.
struct Key {
  std::string path;  ///< dotted: "model.encoder.num_layers"
  std::string help;
  Range range;
  Meta meta;
  ValuePtr value;
  std::vector<OtherName> other_names = {};
  std::vector<OtherValue> other_values = {};
  std::vector<ReadWith> readers = {};  ///< their deciding keys by path
  FormerValue former_value = {};
  std::string former_path = {};  ///< that it is still read by; empty = none
};

/// A key that is gone (retired() in config/field.h), bound to what one object keeps of it.
struct RetiredKey {
  std::string path;
  std::string reason;  ///< why it need not be given
  std::string after;   ///< the key that it stands behind
  ValuePtr value;
  bool* given;
};

/// One table of the configuration file.
struct Section {
  std::string path;  ///< "model", "model.encoder"; of an entry of a list "model.encoders.0"
  std::string help;
  std::vector<OtherName> other_names = {};
  bool is_entry = false;  ///< of a list of tables: `[[model.encoders]]`
};

/// An option of another toolkit whose name alone does not lead to a key: here it is an option of a
/// command, or does not exist, or its key depends on the section. Names that mean a key wherever
/// they are typed stand with that key (FieldDecl::also_called).
struct ForeignOption {
  std::string_view name;   ///< as OtherName::name
  std::string_view key;    ///< path of the key that was meant; empty = there is none
  std::string_view words;  ///< with a key as OtherName::note, else what to do instead
};

struct Schema;
struct Switch;

/// The parts of one section that have a key of some name.
struct Owners {
  const Switch* section;
  std::vector<std::string> parts;  ///< never empty
};

/// One of the parts that a section may be, as it would be bound with its defaults.
struct Alternative {
  std::string name;
  std::shared_ptr<const Schema> schema;  ///< its keys below the section, without `name`
  std::shared_ptr<const void> defaults;  ///< what these keys point into
};

/// A section whose key `name` says which part it is (config/choice.h, config/open_choice.h).
struct Switch {
  std::string section;  ///< "model.encoder"
  std::string below;    ///< what the keys of its parts stand below: the section, or "" = the root
  std::vector<Alternative> alternatives;
  /// Makes the object behind take the part of this name, with its defaults where it was another
  /// one; false when there is none. Keys that were bound before are invalid then.
  std::function<bool(const std::string&)> select;

  std::string name_key() const { return section + ".name"; }
  /// Whether a key or section of this path may be a part's.
  bool may_have(const std::string& path) const {
    return below.empty() || path.starts_with(below + ".");
  }
};

/// No experiment has more tables in a list; a file that has is a mistake.
inline constexpr size_t kMostEntries = 64;

/// A list of tables, `[[model.encoders]]` once for each. It begins empty, and its keys are those of
/// the entries that there are: "model.encoders.0.num_layers", counted from 0.
struct List {
  std::string path;  ///< "model.encoders"
  std::string help;
  std::vector<OtherName> other_names = {};
  /// An entry as it would be bound with its defaults, its keys directly below the list:
  /// "model.encoders.num_layers".
  std::shared_ptr<const Schema> entry;
  std::shared_ptr<const void> defaults;  ///< what these keys point into
  size_t size = 0;                       ///< entries that are bound
  /// Gives the object behind this many entries, each with its defaults. Keys that were bound before
  /// are invalid then.
  std::function<void(size_t)> make;

  std::string entry_path(size_t number) const { return path + "." + std::to_string(number); }
};

/// All keys of an options struct, with the sections they stand in, in the order of declaration.
/// A section that is one of several parts has the keys of the part that the object has; a list has
/// those of the entries that the object has.
struct Schema {
  std::vector<Section> sections;
  std::vector<Key> keys;
  std::vector<Switch> switches = {};
  std::vector<List> lists = {};
  std::vector<RetiredKey> retired = {};
  std::function<Schema()> bound_again = {};  ///< the same object's, after a select() or make()
  /// Gives the object the defaults that depend on its parts; for schemas that messages read.
  std::function<void()> resolve_defaults = {};
  std::span<const ForeignOption> foreign = {};  ///< of a table that lasts

  const Key* find(const std::string& path) const;  ///< by its path, or by the one that it had
  const RetiredKey* find_retired(const std::string& path) const;
  const Section* find_section(const std::string& path) const;
  const Switch* find_switch(const std::string& section) const;
  /// The one whose parts have sections beside it, at the root of a file; nullptr = none.
  const Switch* root_switch() const;
  const List* find_list(const std::string& path) const;
  /// Whether it is a key, section or list, or one inside a list, however many entries that has.
  bool has(const std::string& path) const;
  /// The innermost list that this path leads into: "model.encoders" for "model.encoders.3.name",
  /// also when there are fewer entries; nullptr = none.
  const List* list_above(const std::string& path) const;
  /// The path as the reference has it, and headers in a file: "model.encoders.name" for
  /// "model.encoders.3.name".
  std::string without_numbers(const std::string& path) const;
  /// How a section begins in a file: "[model.encoder]", "[[model.encoders]]" for each entry, and
  /// "[model.heads.decoder]" for a section of the entry above it.
  std::string header(const Section& section) const;
  /// The name that the part of a switch has at present.
  const std::string& chosen(const Switch& section) const;
  /// "transformer, lstm": the parts of which a key or section of this path belongs to others than
  /// the chosen one; empty = none.
  std::vector<std::string> other_owners(const std::string& path, const Switch** of = nullptr) const;
  /// Where a key stands in a section that is one of several parts, and none of these has it: the
  /// other such sections whose parts have a key of that name, the chosen one or not. For
  /// "model.decoder.bidirectional" it is lstm of "model.encoder". Where a key stands above such
  /// sections, it is those of the sections below: for "model.bidirectional" the same.
  std::vector<Owners> owners_elsewhere(const std::string& path) const;
};

/// The schema without what the chosen part of a switch brings, for which `part` stands instead;
/// nullptr = nothing. `name` keeps its value.
Schema with_part(const Schema& schema, const Switch& parts, const Alternative* part);

/// Shortest form that reads back to the same double, without an exponent where people need none:
/// "0.0005", "1e-7", "3".
std::string number_text(double value);
std::string type_name(
    const ValuePtr& value);  ///< "integer", "number", "string", "list of strings", …
std::string value_text(const ValuePtr& value);  ///< as TOML writes it
std::string range_text(const Key& key);  ///< "in [0, 1)", "one of adam, adamw, sgd"; empty = any
/// What is wrong with the present value, for instance "must be in [0, 1), got 1.5"; empty =
/// nothing.
std::string range_error(const Key& key);
/// "integer, default 4000, steps" for messages and lists.
std::string key_summary(const Key& key, const Schema& defaults);

/// The present value of a key that chooses (ReadWith), in the words of ReadWith::values; of a
/// number "0" or another one.
std::string chosen_value(const Key& deciding_key);
/// Whether the reader reads its key with this chosen_value().
bool reads_with(const ReadWith& reader, const std::string& chosen);
/// "optim.name = lars or larc", "optim.name = any but sgd", "model.lora.rank above 0"
std::string reader_text(const ReadWith& reader, const Schema& schema);
/// The same of all readers of a key, "…, or with …"; empty = it always counts.
std::string readers_text(const Key& key, const Schema& schema);

namespace detail {

struct Anything {
  template <class T>
  operator T() const;  // never defined: only its type is asked for
};

template <class T, class... Args>
concept BraceConstructible = requires {
  T{Args{}...};
};

/// Elements of an aggregate: its members, and one for a base class.
template <class T, class... Args>
consteval size_t element_count() {
  if constexpr (BraceConstructible<T, Args..., Anything>) {
    return element_count<T, Args..., Anything>();
  } else {
    return sizeof...(Args);
  }
}

template <class T>
consteval size_t member_count();

/// What the members of base classes add to the elements of an aggregate, which has one for each.
template <class Base>
struct AddedBy {
  static consteval size_t count() { return member_count<Base>() - 1; }
};
template <class... Base>
struct AddedBy<Bases<Base...>> {
  static consteval size_t count() { return (AddedBy<Base>::count() + ...); }
};

/// Members of an aggregate. One with a base class names it `Inherited`, and has its members too;
/// one with several names Bases<…>.
template <class T>
consteval size_t member_count() {
  if constexpr (requires { typename T::Inherited; }) {
    return element_count<T>() + AddedBy<typename T::Inherited>::count();
  } else {
    return element_count<T>();
  }
}

template <class T>
concept HasFields = requires {
  T::fields();
};

inline std::string joined(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

inline std::vector<ReadWith> with_paths(std::vector<ReadWith> readers, const std::string& section) {
  for (auto& reader : readers) {
    if (!reader.from_root) reader.deciding_key = joined(section, reader.deciding_key);
  }
  return readers;
}

template <class T>
concept IsChoice = T::is_choice;

template <class T>
inline constexpr bool is_retired = false;
template <class T>
inline constexpr bool is_retired<Retired<T>> = true;

template <class T>
concept IsTable = HasFields<T> || IsChoice<T>;

template <class T>
concept IsListOfTables = requires {
  typename T::value_type;
  requires IsTable<typename T::value_type>;
  requires std::same_as<T, std::vector<typename T::value_type>>;
};

}  // namespace detail

/// A forgotten member of an options struct fails the build.
template <class T>
inline constexpr bool lists_every_member = decltype(T::fields())::kSize ==
                                           detail::member_count<T>();

template <class T>
void bind(T& object, const std::string& path, Schema& schema);

namespace detail {

/// Keys of an object that has its defaults. Whoever binds an Experiment wants those of every part
/// that it could have: they are made once for each path, and are never written to.
struct Defaults {
  std::shared_ptr<const Schema> schema;
  std::shared_ptr<const void> object;
};

/// @param make  makes the Defaults of a path; every call for the same T does the same
template <class T, class Make>
Defaults defaults_at(const std::string& path, Make make) {
  static std::mutex mutex;
  static std::map<std::string, Defaults> made;
  const std::lock_guard lock(mutex);
  const auto found = made.find(path);
  return found != made.end() ? found->second : made.emplace(path, make()).first->second;
}

/// An alternative by itself, with its defaults.
template <class T>
Alternative alternative(const std::string& path) {
  auto defaults = defaults_at<T>(path, [&]() -> Defaults {
    auto object = std::make_shared<T>();
    auto schema = std::make_shared<Schema>();
    config::bind(*object, path, *schema);
    return {std::move(schema), std::move(object)};
  });
  return {T::kName, std::move(defaults.schema), std::move(defaults.object)};
}

template <class... Alternatives>
std::vector<Alternative> alternatives(const Choice<Alternatives...>&, const std::string& path) {
  return {alternative<Alternatives>(path)...};
}
inline std::vector<Alternative> alternatives(const OpenChoice& parts, const std::string& path) {
  std::vector<Alternative> found;
  for (const auto& one : parts.alternatives()) found.push_back(one.alone(path));
  return found;
}

template <class... Alternatives>
void bind_part(Choice<Alternatives...>& parts, const std::string& path, Schema& schema) {
  parts.visit([&](auto& present) { config::bind(present, path, schema); });
}
inline void bind_part(OpenChoice& parts, const std::string& path, Schema& schema) {
  parts.bind_part(path, schema);
}

/// A part's section may be one that there is already: its keys join, and its other names.
inline void add_section(Schema& schema, Section section) {
  for (auto& present : schema.sections) {
    if (present.path != section.path) continue;
    present.other_names.insert(present.other_names.end(), section.other_names.begin(),
                               section.other_names.end());
    return;
  }
  schema.sections.push_back(std::move(section));
}

/// The key `name` of a section that is one of several parts, then the keys of the present one.
/// @param below  what the keys of parts stand below
template <class Parts, class Declared>
void bind_choice(Parts& parts, const Declared& declared, const std::string& path,
                 const std::string& below, Schema& schema) {
  schema.keys.push_back({.path = joined(path, "name"),
                         .help = declared.parts_stand_beside
                                     ? "which one; it decides the keys of its sections"
                                     : "which one; it decides the other keys of the section",
                         .range = one_of(parts.names()),
                         .meta = declared.meta,
                         .value = &parts.name_to_bind(),
                         .other_names = {{"type", ""}, {"arch", ""}, {"kind", ""}, {"class", ""}},
                         .other_values = declared.other_values});
  bind_part(parts, below, schema);
  schema.switches.push_back({path, below, alternatives(parts, below),
                             [&parts](const std::string& name) { return parts.select(name); }});
}

template <class Entry, class Declared>
void bind_entry(Entry& entry, const Declared& declared, const std::string& path, Schema& schema) {
  schema.sections.push_back({.path = path, .help = declared.help, .is_entry = true});
  if constexpr (IsChoice<Entry>) {
    bind_choice(entry, declared, path, path, schema);
  } else {
    config::bind(entry, path, schema);
  }
}

template <class Entry, class Declared>
void bind_list(std::vector<Entry>& entries, const Declared& declared, const std::string& path,
               Schema& schema) {
  auto defaults = defaults_at<Declared>(path, [&]() -> Defaults {
    auto entry = std::make_shared<Entry>();
    auto keys = std::make_shared<Schema>();
    bind_entry(*entry, declared, path, *keys);
    return {std::move(keys), std::move(entry)};
  });
  schema.lists.push_back({path, declared.help, declared.other_names, std::move(defaults.schema),
                          std::move(defaults.object), entries.size(),
                          [&entries](size_t count) { entries.assign(count, Entry{}); }});
  const auto bound = [&](size_t i) { return joined(path, std::to_string(i)); };
  for (size_t i = 0; i < entries.size(); ++i) bind_entry(entries[i], declared, bound(i), schema);
}

}  // namespace detail

/// Adds the keys of `object` below `path` to `schema`. The schema points into the object.
template <class T>
void bind(T& object, const std::string& path, Schema& schema) {
  static_assert(lists_every_member<T>, "fields() must list every member of the options struct");
  // Declarations are made for this call alone, and their texts are many: they are moved.
  T::fields().for_each([&](auto& field) {
    auto& member = object.*(field.member);
    std::string here = detail::joined(path, field.name);
    using Member = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_retired<Member>) {
      const std::string before = schema.keys.empty() ? "" : schema.keys.back().path;
      schema.retired.push_back(
          {std::move(here), std::move(field.reason), before, &member.value, &member.given});
    } else if constexpr (detail::IsChoice<Member>) {
      detail::add_section(schema, {here, field.help, field.other_names});
      detail::bind_choice(member, field, here, field.parts_stand_beside ? path : here, schema);
    } else if constexpr (detail::IsListOfTables<Member>) {
      detail::bind_list(member, field, here, schema);
    } else if constexpr (detail::HasFields<Member>) {
      detail::add_section(schema, {here, std::move(field.help), std::move(field.other_names)});
      config::bind(member, here, schema);  // std::bind would take anything
    } else {
      const std::string& before = field.former_name;
      schema.keys.push_back(
          {std::move(here), std::move(field.help), std::move(field.range), std::move(field.meta),
           &member, std::move(field.other_names), std::move(field.other_values),
           detail::with_paths(std::move(field.readers), path), std::move(field.former_value),
           before.empty() ? before : detail::joined(path, before)});
    }
  });
}

template <class T>
Schema schema_of(T& object) {
  Schema schema;
  bind(object, "", schema);
  schema.bound_again = [&object] { return schema_of(object); };
  return schema;
}

}  // namespace stretto::config
