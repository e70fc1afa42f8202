#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/choice.h"
#include "config/field.h"

namespace stretto::search {

/// `[[space]] name = "categorical"`: one of several values without an order.
struct CategoricalOptions {
  static constexpr const char* kName = "categorical";

  std::string key;
  std::vector<std::string> values;
  std::vector<std::string> when;

  static auto fields();
};

/// `[[space]] name = "numbers"`: one of several numbers, which have an order.
struct NumbersOptions {
  static constexpr const char* kName = "numbers";

  std::string key;
  std::vector<double> values;
  std::vector<std::string> when;

  static auto fields();
};

/// `[[space]] name = "int"`: a whole number, each as likely as any other.
struct IntOptions {
  static constexpr const char* kName = "int";

  std::string key;
  int64_t min = 0, max = 0;
  int64_t count = 0;
  std::vector<std::string> when;

  static auto fields();
};

/// `[[space]] name = "double"`: a number, uniform between two bounds.
struct DoubleOptions {
  static constexpr const char* kName = "double";

  std::string key;
  double min = 0, max = 0;
  int64_t count = 0;
  std::vector<std::string> when;

  static auto fields();
};

/// `[[space]] name = "log"`: a number whose logarithm is uniform between those of two bounds.
struct LogOptions {
  static constexpr const char* kName = "log";

  std::string key;
  double min = 0, max = 0;
  bool integer = false;
  int64_t count = 0;
  std::vector<std::string> when;

  static auto fields();
};

/// One hyperparameter.
using ParameterChoice =
    config::Choice<CategoricalOptions, NumbersOptions, IntOptions, DoubleOptions, LogOptions>;

/// A key of block `number`, counted from 0, as messages and origins have it: "space.2.values".
inline std::string space_key(size_t number, const std::string& name) {
  return "space." + std::to_string(number) + "." + name;
}

namespace detail {

// A hyperparameter stays as it was when a search goes on, but for its bounds and values: those may
// become narrower, which search/changes.h judges.
inline constexpr config::Change kFixed = config::Change::kFixed, kFree = config::Change::kFree;

template <class O>
auto key_field() {
  return config::field(&O::key, "key", "the key of the configuration that it is: optim.lr",
                       config::any(), {.change = kFixed})
      .also_called({"parameter", "param", "path", "hyperparameter", "option"});
}

template <class O>
auto when_field() {
  return config::field(
             &O::when, "when",
             "\"KEY=VALUE\" of hyperparameters above it: only with these it is part of a point; "
             "values of one key are alternatives, several keys must all hold",
             config::any(), {.change = kFixed})
      .also_called({"condition", "conditions", "only_if", "if", "depends_on"});
}

template <class O>
auto count_field() {
  return config::field(&O::count, "count",
                       "points of a grid, both bounds among them; 0 = all whole numbers",
                       config::between(0, 100'000), {.unit = "points", .change = kFixed})
      .also_called({"num_points", "steps", "num"});
}

template <class O>
auto min_field() {
  return config::field(&O::min, "min", "the least value", config::any(), {.change = kFree})
      .also_called({"minval", "low", "lower", "lower_bound", "from"});
}

template <class O>
auto max_field() {
  return config::field(&O::max, "max", "the greatest value", config::any(), {.change = kFree})
      .also_called({"maxval", "high", "upper", "upper_bound", "to"});
}

}  // namespace detail

inline auto CategoricalOptions::fields() {
  using O = CategoricalOptions;
  return config::Fields{
      detail::key_field<O>(),
      config::field(&O::values, "values",
                    "the values, written as on the command line: [\"adam\", \"lamb\"], "
                    "[\"true\", \"false\"]; numbers have an order, and are name = \"numbers\"",
                    config::any(), {.change = detail::kFree})
          .also_called({"vals", "choices", "options", "categories"}),
      detail::when_field<O>(),
  };
}

inline auto NumbersOptions::fields() {
  using O = NumbersOptions;
  return config::Fields{
      detail::key_field<O>(),
      config::field(&O::values, "values", "the numbers: [64, 128, 256]", config::any(),
                    {.change = detail::kFree})
          .also_called({"vals", "choices", "options"}),
      detail::when_field<O>(),
  };
}

inline auto IntOptions::fields() {
  using O = IntOptions;
  return config::Fields{detail::key_field<O>(), detail::min_field<O>(), detail::max_field<O>(),
                        detail::count_field<O>(), detail::when_field<O>()};
}

inline auto DoubleOptions::fields() {
  using O = DoubleOptions;
  return config::Fields{detail::key_field<O>(), detail::min_field<O>(), detail::max_field<O>(),
                        detail::count_field<O>(), detail::when_field<O>()};
}

inline auto LogOptions::fields() {
  using O = LogOptions;
  return config::Fields{
      detail::key_field<O>(),
      detail::min_field<O>(),
      detail::max_field<O>(),
      config::field(&O::integer, "integer", "rounded to a whole number", config::any(),
                    {.change = detail::kFixed}),
      detail::count_field<O>(),
      detail::when_field<O>(),
  };
}

}  // namespace stretto::search
