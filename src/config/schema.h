#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "config/field.h"

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
  std::vector<ReadWith> readers = {};  ///< choosers by their paths
};

/// One table of the configuration file.
struct Section {
  std::string path;  ///< "model", "model.encoder"
  std::string help;
  std::vector<OtherName> other_names = {};
};

/// All keys of an options struct, with the sections they stand in, in the order of declaration.
struct Schema {
  std::vector<Section> sections;
  std::vector<Key> keys;

  const Key* find(const std::string& path) const;
  const Section* find_section(const std::string& path) const;
};

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

namespace detail {

struct Anything {
  template <class T>
  operator T() const;  // never defined: only its type is asked for
};

template <class T, class... Args>
concept BraceConstructible = requires {
  T{Args{}...};
};

/// Members of an aggregate without base classes.
template <class T, class... Args>
consteval size_t member_count() {
  if constexpr (BraceConstructible<T, Args..., Anything>) {
    return member_count<T, Args..., Anything>();
  } else {
    return sizeof...(Args);
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
  for (auto& reader : readers) reader.chooser = joined(section, reader.chooser);
  return readers;
}

}  // namespace detail

/// A forgotten member of an options struct fails the build.
template <class T>
inline constexpr bool lists_every_member = std::tuple_size_v<decltype(T::fields())> ==
                                           detail::member_count<T>();

/// Adds the keys of `object` below `path` to `schema`. The schema points into the object.
template <class T>
void bind(T& object, const std::string& path, Schema& schema) {
  static_assert(lists_every_member<T>, "fields() must list every member of the options struct");
  std::apply(
      [&](auto&&... declared) {
        // Declarations are made for this call alone, and their texts are many: they are moved.
        const auto one = [&](auto& field) {
          auto& member = object.*(field.member);
          std::string here = detail::joined(path, field.name);
          using Member = std::remove_reference_t<decltype(member)>;
          if constexpr (detail::HasFields<Member>) {
            schema.sections.push_back({here, std::move(field.help), std::move(field.other_names)});
            config::bind(member, here, schema);  // std::bind would take anything
          } else {
            schema.keys.push_back({std::move(here), std::move(field.help), std::move(field.range),
                                   std::move(field.meta), &member, std::move(field.other_names),
                                   std::move(field.other_values),
                                   detail::with_paths(std::move(field.readers), path)});
          }
        };
        (one(declared), ...);
      },
      T::fields());
}

template <class T>
Schema schema_of(T& object) {
  Schema schema;
  bind(object, "", schema);
  return schema;
}

}  // namespace stretto::config
