#pragma once

#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "config/fields.h"

namespace stretto::config {

/// `Inherited` of an options struct with several base classes (config/schema.h counts members).
template <class... Base>
struct Bases {};

/// May a key differ between the run that wrote a checkpoint and the run that goes on from it?
enum class Change {
  kFixed,  ///< shapes the result: another value is another experiment
  kFree,   ///< keeping, logging, report, threads
  /// Free too, but shapes the scores of a run: stops, validation, decoding. Runs whose scores are
  /// compared have the same value.
  kScoring,
  /// How files are read: fixed for a run, but not for whoever reads other files with its model.
  kReading,
};

/// Whether a run may go on with another value.
inline bool is_free(Change change) {
  return change == Change::kFree || change == Change::kScoring;
}

/// Which values a key takes. Numbers: an interval. Strings: a list of choices, or anything.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;  ///< true: the bound itself is not allowed
  bool max_open = false;
  std::vector<std::string> choices;  ///< strings only; empty = any string
  /// The choices are those that are known beforehand: a rule judges any other string.
  bool open = false;
};

inline Range any() {
  return {};
}
inline Range at_least(double min) {
  return {.min = min, .choices = {}};
}
inline Range greater(double min) {
  return {.min = min, .min_open = true, .choices = {}};
}
inline Range between(double min, double max) {
  return {.min = min, .max = max, .choices = {}};
}
/// [0, 1): probabilities of dropping, moving-average factors.
inline Range fraction() {
  return {.min = 0, .max = 1, .max_open = true, .choices = {}};
}
inline Range one_of(std::vector<std::string> choices) {
  return {.choices = std::move(choices)};
}

inline Range such_as(std::vector<std::string> choices) {
  return {.choices = std::move(choices), .open = true};
}

/// What else is worth knowing about a key.
struct Meta {
  std::string unit = "";  ///< "steps", "tokens", "seconds", "bytes", …
  Change change = Change::kFixed;
  bool is_path =
      false;  ///< relative values are relative to the config file; `FILE:MEMBER` for .zip
  /// In a list of paths, a folder or a pattern stands for its files (config/path_list.h).
  bool takes_folders = false;
  /// The same of a pattern alone: a folder stands for itself.
  bool takes_patterns = false;
  /// Each process of a run may have another value: it is its own, or rank 0 alone goes by it.
  bool per_process = false;
  /// Models that differ in it may have tensors of the same shapes, and compute other numbers:
  /// neither takes over weights of the other. What a key means only beside others, a rule compares.
  bool hidden_in_shapes = false;
};

/// What else a key or section is called: by other toolkits, or by people.
struct OtherName {
  /// In lower case with `_`: case and `-` do not matter in what is typed. With a dot it is a whole
  /// path.
  std::string name;
  /// What is different here: a remark, or the value that means it, `= "mixed_fp16"`.
  std::string note;
};

/// What else one of a key's values is called.
struct OtherValue {
  std::string name;   ///< letters and digits alone count: "AdamW" is "adam_w"
  std::string value;  ///< ours, one of `Range::choices`
  std::string note;   ///< what is different here
};

/// A value that was renamed. The old name is still read; and runs that were made with either are
/// the same, so that hashes keep the old one.
struct FormerValue {
  std::string before, now;  ///< empty = there is none
};

/// A key changes something only while another key, its deciding key, has one of these values, and
/// while something reads the deciding key.
struct ReadWith {
  std::string deciding_key;  ///< in field() the leaf, "name"; in a Schema the path, "optim.name"
  std::vector<std::string> values;  ///< of a text, or "true"; empty = any number but 0
  bool from_root = false;           ///< `deciding_key` is a path in field() too
};

/// One key of a section: bound to a member, declared once, used for parsing, overrides, validation,
/// `stretto describe`, docs/config.md, the JSON schema, completion and the echo in the run folder.
///
///     field(&O::beta1, "beta1", "decay of the first moment", fraction())
///         .also_called({"adam_beta1"})
///         .also_called({"adam_betas"}, "beta1 and beta2 are keys of their own")
///         .read_with("name", {"adam", "adamw"})
///
///     field(&O::decay, "noise_decay", "of the noise").read_unless_zero("noise")
///
/// What follows `field(…)` is read by `stretto check`, `stretto describe` and messages only.
template <class Owner, class T>
struct FieldDecl {
  T Owner::*member;
  std::string name;
  std::string help;
  Range range;
  Meta meta;
  std::vector<OtherName> other_names = {};
  std::vector<OtherValue> other_values = {};
  std::vector<ReadWith> readers = {};  ///< the key counts with any of them; empty = always
  FormerValue former_value = {};
  std::string former_name = {};
  bool parts_stand_beside = false;

  /// A user who types one of these names is told of this key, or section.
  FieldDecl also_called(std::initializer_list<const char*> names, const char* note = "") && {
    for (const char* other : names) other_names.push_back({other, note});
    return std::move(*this);
  }
  /// The same for one of the key's values: "mixed_bf16", {"bf16", "bfloat16"}.
  FieldDecl value_also_called(const char* value, std::initializer_list<const char*> names,
                              const char* note = "") && {
    for (const char* other : names) other_values.push_back({other, value, note});
    return std::move(*this);
  }
  /// The key had this name. It is still read by that name, and hashes keep it: a run that was made
  /// under either name is the same.
  FieldDecl formerly(std::string name) && {
    former_name = std::move(name);
    return std::move(*this);
  }
  /// `now`, one of the key's values, was called `before`.
  FieldDecl value_formerly(const char* now, const char* before) && {
    former_value = {before, now};
    return std::move(*this);
  }
  /// For a Choice: the sections of its parts stand beside this one, not below it, and a part may
  /// have one of the same name for keys that join `name`. The key `task.name` decides what `[data]`
  /// is.
  FieldDecl with_parts_beside() && {
    parts_stand_beside = true;
    return std::move(*this);
  }
  /// Nothing reads the key with other values of `deciding_key`, a text or {"true"}; called twice:
  /// with values of either call.
  FieldDecl read_with(std::string deciding_key, std::vector<std::string> values) && {
    readers.push_back({std::move(deciding_key), std::move(values)});
    return std::move(*this);
  }
  /// The same of several deciding keys: the key counts with any of them; with none always.
  FieldDecl read_with_any(const std::vector<std::string>& deciding_keys,
                          const std::vector<std::string>& values) && {
    for (const std::string& deciding_key : deciding_keys) readers.push_back({deciding_key, values});
    return std::move(*this);
  }
  /// The same of a deciding key in another section, by its path from the root.
  FieldDecl read_with_key(std::string path, std::vector<std::string> values) && {
    readers.push_back({std::move(path), std::move(values), true});
    return std::move(*this);
  }
  /// Nothing reads the key while `deciding_key`, a number that cannot be negative, is 0.
  FieldDecl read_unless_zero(std::string deciding_key) && {
    readers.push_back({std::move(deciding_key), {}});
    return std::move(*this);
  }
};

/// @tparam T  bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>;
///            a struct that has `fields()` itself (a nested table, `model.encoder.num_layers`), or
///            a Choice of such; or a std::vector of either, empty by default: a list of tables,
///            `[[model.encoders]]`, whose keys are `model.encoders.0.num_layers` and so on
template <class Owner, class T>
FieldDecl<Owner, T> field(T Owner::*member, std::string name, std::string help, Range range = any(),
                          Meta meta = {}) {
  return {member, std::move(name), std::move(help), std::move(range), std::move(meta)};
}

/// The value of a key that is gone, see retired(). Hashes read it, and nothing else does.
template <class T>
struct Retired {
  T value;             ///< what was given, or what the key would have: at first its default
  bool given = false;  ///< by a file, or on the command line
};

template <class Owner, class T>
struct RetiredDecl {
  Retired<T> Owner::*member;
  std::string name;
  std::string reason;
};

/// A fixed key that is gone, where it stood among the others.
///
///     retired(&O::d_model, "d_model", "noam has the width from the model")
///
/// Hashes keep it at this place, so that a run that was made with it is still the same experiment:
/// with its default, or with the value that had to be given, which `experiment` fills in
/// (resolve_defaults). Old files are read: a value that is given is hashed, and makes a note with
/// `reason` (config/load.h); the resolved copy states it, since hashes are made of that too. A rule
/// may refuse values that would have meant something else. No list of keys has it: neither the
/// reference nor completion nor suggestions.
///
/// Not for the first key of a section of the file: the hash has it behind the key before it.
template <class Owner, class T>
RetiredDecl<Owner, T> retired(Retired<T> Owner::*member, std::string name, std::string reason) {
  return {member, std::move(name), std::move(reason)};
}

}  // namespace stretto::config
