#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "base/text.h"

/// What `model.init` says of first weights. No libtorch: `stretto check` reads it by the same
/// functions as training.
namespace stretto::nn {

/// How the elements of a tensor are drawn. A matrix is [rows, columns]: fan_in is its columns (of a
/// convolution: taps times channels), fan_out its rows, of merged matrices those of one part.
enum class Distribution : uint8_t {
  kXavierUniform,    ///< in ±gain sqrt(6 / (fan_in + fan_out)); Glorot and Bengio 2010
  kXavierNormal,     ///< deviation gain sqrt(2 / (fan_in + fan_out)); Glorot and Bengio 2010
  kHeUniform,        ///< in ±gain sqrt(6 / fan_in); He et al. 2015, arXiv:1502.01852
  kHeNormal,         ///< deviation gain sqrt(2 / fan_in); He et al. 2015
  kUniform,          ///< in [-a, a)
  kNormal,           ///< mean 0, deviation std
  kTruncatedNormal,  ///< as kNormal; what lies beyond two std is drawn again
  kOrthogonal,       ///< gain times orthonormal columns, or rows where those are fewer, of each
                     ///< part; Saxe et al. 2013, arXiv:1312.6120
  kConstant,         ///< every element is value
};

/// An entry of `model.init`: "PATTERN NAME", "PATTERN NAME SETTING=NUMBER".
struct InitRule {
  std::string pattern;
  Distribution distribution = Distribution::kConstant;
  double number = 0;  ///< gain, a, std or value
};

/// Normal with deviation D^-0.5: how rows of a width D start whose products with rows of unit
/// variance should have unit variance. Its pattern is empty.
inline InitRule normal_of_width(int64_t d_model) {
  return {.distribution = Distribution::kNormal,
          .number = 1.0 / std::sqrt(static_cast<double>(d_model))};
}

/// An initialiser by its name.
struct InitialiserName {
  std::string_view name;
  Distribution distribution = Distribution::kConstant;
  std::string_view setting;      ///< what its number is called; empty = it takes none
  std::optional<double> number;  ///< without a default the setting must be given
};

inline constexpr std::array<InitialiserName, 11> kInitialisers{{
    {"xavier_uniform", Distribution::kXavierUniform, "gain", 1},
    {"xavier_normal", Distribution::kXavierNormal, "gain", 1},
    {"he_uniform", Distribution::kHeUniform, "gain", 1},
    {"he_normal", Distribution::kHeNormal, "gain", 1},
    {"uniform", Distribution::kUniform, "a", std::nullopt},
    {"normal", Distribution::kNormal, "std", std::nullopt},
    {"truncated_normal", Distribution::kTruncatedNormal, "std", std::nullopt},
    {"orthogonal", Distribution::kOrthogonal, "gain", 1},
    {"constant", Distribution::kConstant, "value", std::nullopt},
    {"zeros", Distribution::kConstant, "", 0},
    {"ones", Distribution::kConstant, "", 1},
}};

/// Whether it asks for rows and columns, which a bias or the gain of a norm has not.
inline bool needs_matrix(Distribution distribution) {
  return distribution <= Distribution::kHeNormal || distribution == Distribution::kOrthogonal;
}

/// Why an entry cannot be read.
struct InitProblem {
  std::string what, hint;
};

/// "xavier_uniform gain=1, …, normal std=NUMBER, …, ones"
inline std::string known_initialisers() {
  std::vector<std::string> all;
  for (const auto& known : kInitialisers) {
    std::string text(known.name);
    if (!known.setting.empty()) {
      text += " " + std::string(known.setting) + "=" +
              (known.number ? shortest(*known.number) : "NUMBER");
    }
    all.push_back(text);
  }
  return join(all, ", ");
}

/// Reads the setting of `known` into `rule`.
inline std::optional<InitProblem> read_init_setting(const std::string& entry,
                                                    const std::string& word,
                                                    const InitialiserName& known, InitRule& rule) {
  const std::string in_entry = "in `" + printable(entry) + "`, ", name(known.name);
  const std::string setting(known.setting);
  if (setting.empty()) {
    return InitProblem{in_entry + "`" + name + "` takes no setting, got `" + printable(word) + "`",
                       "write \"PATTERN " + name + "\""};
  }
  if (!word.starts_with(setting + "=")) {
    return InitProblem{in_entry + "unknown setting `" + printable(word) + "`",
                       "`" + name + "` takes " + setting + "=NUMBER"};
  }
  const char *begin = word.data() + setting.size() + 1, *end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(begin, end, rule.number);
  // Only what every element is may be negative.
  const bool in_range = rule.distribution == Distribution::kConstant
                            ? rule.number > -1e30 && rule.number < 1e30
                            : rule.number > 0 && rule.number < 1e30;
  if (error == std::errc() && stop == end && in_range) return std::nullopt;
  return InitProblem{in_entry + "`" + printable(word) + "` needs a number " +
                         (rule.distribution == Distribution::kConstant ? "between -1e30 and 1e30"
                                                                       : "above 0, below 1e30"),
                     "write for instance " + setting + "=0.02"};
}

/// Reads an entry into `rule`; what is wrong with it, or nothing.
inline std::optional<InitProblem> read_init_rule(const std::string& entry, InitRule& rule) {
  const auto words = split_words(entry);
  const std::string quoted = "`" + printable(entry) + "`";
  if (words.size() < 2) {
    return InitProblem{quoted + " names no initialiser",
                       "write \"PATTERN NAME\"; known: " + known_initialisers()};
  }
  const InitialiserName* known = nullptr;
  std::vector<std::string> names;
  for (const auto& candidate : kInitialisers) {
    names.emplace_back(candidate.name);
    if (candidate.name == words[1]) known = &candidate;
  }
  if (known == nullptr) {
    const std::string near = closest(words[1], names);
    return InitProblem{
        "in " + quoted + ", unknown initialiser `" + printable(words[1]) + "`",
        (near.empty() ? "" : "did you mean " + near + "? ") + "known: " + known_initialisers()};
  }
  rule = {words[0], known->distribution, known->number.value_or(0)};
  if (words.size() > 3) {
    return InitProblem{"in " + quoted + ", `" + printable(words[3]) + "` is too much",
                       "an initialiser has one setting at most"};
  }
  if (words.size() == 3) return read_init_setting(entry, words[2], *known, rule);
  if (known->number) return std::nullopt;
  const std::string setting(known->setting);
  return InitProblem{
      "in " + quoted + ", `" + words[1] + "` needs " + setting,
      "write for instance \"" + printable(words[0]) + " " + words[1] + " " + setting + "=0.02\""};
}

/// The first rule whose pattern matches the name, or null.
inline const InitRule* find_rule(std::span<const InitRule> rules, std::string_view name) {
  for (const InitRule& rule : rules) {
    if (matches(rule.pattern, name)) return &rule;
  }
  return nullptr;
}

}  // namespace stretto::nn
