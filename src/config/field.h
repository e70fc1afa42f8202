#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace stretto::config {

/// May a key differ between the run that wrote a checkpoint and the run that goes on from it?
enum class Change {
  kFixed,  ///< shapes the result: another value is another experiment
  kFree,   ///< stops, keeping, logging, evaluation interval, report, threads
};

/// Which values a key takes. Numbers: an interval. Strings: a list of choices, or anything.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;  ///< true: the bound itself is not allowed
  bool max_open = false;
  std::vector<std::string> choices;  ///< strings only; empty = any string
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

/// What else is worth knowing about a key.
struct Meta {
  std::string unit = "";  ///< "steps", "tokens", "seconds", "bytes", …
  Change change = Change::kFixed;
  bool is_path =
      false;  ///< relative values are relative to the config file; `FILE:MEMBER` for .zip
};

/// One key of a section: bound to a member, declared once, used for parsing, overrides, validation,
/// `stretto describe`, docs/config.md, the JSON schema, completion and the echo in the run folder.
template <class Owner, class T>
struct FieldDecl {
  T Owner::*member;
  std::string name;
  std::string help;
  Range range;
  Meta meta;
};

/// @tparam T  bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>,
///            or a struct that has `fields()` itself (a nested table, `model.encoder.num_layers`)
template <class Owner, class T>
FieldDecl<Owner, T> field(T Owner::*member, std::string name, std::string help, Range range = any(),
                          Meta meta = {}) {
  return {member, std::move(name), std::move(help), std::move(range), std::move(meta)};
}

}  // namespace stretto::config
