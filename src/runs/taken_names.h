#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_pattern.h"
#include "base/text.h"
#include "optim/group_options.h"

/// What `train.init_only` says of tensors by their names. No libtorch, as optim/group_options.h.
namespace stretto::runs {

/// An entry of train.init_only: "PATTERN", or "PATTERN = SOURCE" for other names in the other run.
struct TakenNames {
  std::string pattern;
  std::string source;  ///< empty: the names are the same

  /// What the tensor `name`, which the pattern matches, is called in the other run.
  std::string name_in_source(const std::string& name) const {
    if (source.empty()) return name;
    if (!source.ends_with('*')) return source;
    return source.substr(0, source.size() - 1) + name.substr(pattern.size() - 1);
  }

  /// What the other run's tensor `stored` is called in this one; nothing if the entry does not take
  /// it.
  std::optional<std::string> name_of_stored(const std::string& stored) const {
    if (!matches(source.empty() ? pattern : source, stored)) return std::nullopt;
    if (source.empty()) return stored;
    if (!source.ends_with('*')) return pattern;
    return pattern.substr(0, pattern.size() - 1) + stored.substr(source.size() - 1);
  }
};

/// Reads an entry into `taken`; what is wrong with it, or nothing.
inline std::optional<optim::GroupProblem> read_taken_names(const std::string& entry,
                                                           TakenNames& taken) {
  const std::string example =
      "write \"encoder.*\", or \"encoder.* = other.*\" for other names there";
  const size_t equals = entry.find('=');
  const auto own = split_words(entry.substr(0, equals));
  const auto there = equals == std::string::npos ? std::vector<std::string>{}
                                                 : split_words(entry.substr(equals + 1));
  if (own.size() != 1 || there.size() != (equals == std::string::npos ? 0U : 1U)) {
    return optim::GroupProblem{"`" + printable(entry) + "` is no pattern of names", example};
  }
  taken = {own.front(), there.empty() ? "" : there.front()};
  if (taken.source.empty()) return std::nullopt;
  // A star at the end of both stands for the same characters; for others it would not be known.
  const auto shape = [](std::string_view name) {
    const size_t wild = name.find_first_of("*?");
    if (wild == std::string_view::npos) return 0;
    return wild + 1 == name.size() && name.back() == '*' ? 1 : 2;
  };
  if (shape(taken.pattern) == shape(taken.source) && shape(taken.source) < 2) return std::nullopt;
  return optim::GroupProblem{
      "in `" + printable(entry) + "`, both sides need one `*` at their end, or none at all",
      example};
}

}  // namespace stretto::runs
