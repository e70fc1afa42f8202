#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optim/group_options.h"

/// What `train.freeze`, `train.unfreeze`, `model.lora` and `model.adapter` say of which tensors
/// train, by their names. No libtorch, as optim/group_options.h.
namespace stretto::optim {

/// Whether one of the patterns names the tensor. What is tied is one tensor: it is frozen as a
/// whole by any of its names.
inline bool is_frozen(std::span<const std::string> patterns, const TensorName& tensor) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_any_name(pattern, tensor); });
}

/// An entry of train.unfreeze: "PATTERN UPDATES".
struct LateStart {
  std::string pattern;
  int64_t updates = 0;  ///< that are completed before the first that moves the tensors
};

/// Reads an entry into `start`; what is wrong with it, or nothing.
inline std::optional<GroupProblem> read_late_start(const std::string& entry, LateStart& start) {
  const auto words = split_words(entry);
  const std::string quoted = "`" + printable(entry) + "`";
  const std::string hint = "write \"PATTERN UPDATES\", as in \"encoder.layers.1.* 200\"";
  if (words.size() != 2) return GroupProblem{quoted + " is no pattern and a number", hint};
  start.pattern = words.front();
  const char *begin = words.back().data(), *end = begin + words.back().size();
  const auto [stop, error] = std::from_chars(begin, end, start.updates);
  constexpr int64_t kMost = 1'000'000'000'000;
  if (error == std::errc() && stop == end && start.updates >= 0 && start.updates <= kMost) {
    return std::nullopt;
  }
  return GroupProblem{
      "in " + quoted + ", `" + printable(words.back()) + "` is no number of updates", hint};
}

/// Which tensors of a model train, and from when.
///
///     train.unfreeze   the first entry that matches: from its update on, whatever else is said
///     train.freeze     never
///     model.lora       its own matrices, and what model.lora.train names; nothing else
///     model.adapter    the same of adapters; with both, what either of them trains
struct TrainingPlan {
  std::vector<std::string> freeze = {};
  std::vector<LateStart> unfreeze = {};
  /// A section that adds tensors to a model, and freezes its own.
  struct AddingSection {
    std::string section;                  ///< "model.lora", "model.adapter"
    std::vector<std::string> train;       ///< its key of this name: what else trains
    bool (*adds)(std::string_view name);  ///< whether the tensor is one of those
  };
  std::vector<AddingSection> adding = {};

  /// Updates that are completed before the first that moves the tensor; nothing = it never trains.
  std::optional<int64_t> begins(const TensorName& tensor) const {
    for (const LateStart& start : unfreeze) {
      if (matches_any_name(start.pattern, tensor)) return start.updates;
    }
    if (is_frozen(freeze, tensor)) return std::nullopt;
    const bool trains =
        adding.empty() || std::any_of(adding.begin(), adding.end(), [&](const AddingSection& one) {
          return one.adds(tensor.name) || is_frozen(one.train, tensor);
        });
    return trains ? std::optional<int64_t>(0) : std::nullopt;
  }
  bool freezes(const TensorName& tensor) const { return !begins(tensor).has_value(); }

  /// Whether one of the sections adds the tensor to a model.
  bool is_added(const TensorName& tensor) const {
    return std::any_of(adding.begin(), adding.end(),
                       [&](const AddingSection& one) { return one.adds(tensor.name); });
  }
};

/// What is wrong with patterns beside the names of a model.
struct PlanProblem {
  std::string key;
  GroupProblem problem;
};

/// Each pattern of a plan that matches nothing, or that together they leave nothing to train in the
/// first update.
inline std::vector<PlanProblem> plan_problems(const TrainingPlan& plan,
                                              std::span<const TensorName> tensors) {
  std::vector<PlanProblem> problems;
  const auto look = [&](const char* key, const std::string& pattern) {
    if (auto problem = matches_no_name(pattern, tensors)) problems.push_back({key, *problem});
  };
  for (const std::string& pattern : plan.freeze) look("train.freeze", pattern);
  for (const LateStart& start : plan.unfreeze) look("train.unfreeze", start.pattern);
  // Of patterns that reach no linear map, or no part, their own key tells.
  const auto is_added = [&](const TensorName& tensor) { return plan.is_added(tensor); };
  if (!plan.adding.empty() && std::none_of(tensors.begin(), tensors.end(), is_added)) {
    return problems;
  }
  const bool any = std::any_of(tensors.begin(), tensors.end(), [&](const TensorName& tensor) {
    return plan.begins(tensor).has_value();
  });
  const bool any_at_first =
      std::any_of(tensors.begin(), tensors.end(),
                  [&](const TensorName& tensor) { return plan.begins(tensor) == 0; });
  const bool asks = !plan.freeze.empty() || !plan.unfreeze.empty() || !plan.adding.empty();
  if (!asks || tensors.empty() || any_at_first) return problems;
  if (any) {
    problems.push_back(
        {"train.unfreeze",
         {"every parameter of the model is frozen at first: there is nothing to train",
          "leave a part out, usually the head: it then trains from the first update on"}});
  } else {
    problems.push_back({"train.freeze",
                        {"every parameter of the model is frozen: there is nothing to train",
                         "leave out a pattern, or name the part that shall stay as it is: "
                         "\"encoder.*\""}});
  }
  return problems;
}

}  // namespace stretto::optim
