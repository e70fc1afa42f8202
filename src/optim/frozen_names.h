#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "optim/group_options.h"

/// What `train.freeze` says of tensors by their names. No libtorch, as optim/group_options.h.
namespace stretto::optim {

/// Whether one of the patterns names the tensor. What is tied is one tensor: it is frozen as a
/// whole by any of its names.
inline bool is_frozen(std::span<const std::string> patterns, const TensorName& tensor) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_any_name(pattern, tensor); });
}

/// What is wrong with the patterns beside the names of a model: each that matches nothing, or that
/// together they leave nothing to train.
inline std::vector<GroupProblem> freeze_problems(std::span<const std::string> patterns,
                                                 std::span<const TensorName> tensors) {
  std::vector<GroupProblem> problems;
  for (const std::string& pattern : patterns) {
    if (auto problem = matches_no_name(pattern, tensors)) problems.push_back(std::move(*problem));
  }
  const bool any_trains = std::any_of(tensors.begin(), tensors.end(), [&](const auto& tensor) {
    return !is_frozen(patterns, tensor);
  });
  if (!any_trains && !patterns.empty()) {
    problems.push_back({"every parameter of the model is frozen: there is nothing to train",
                        "leave out a pattern, or name the part that shall stay as it is: "
                        "\"encoder.*\""});
  }
  return problems;
}

}  // namespace stretto::optim
