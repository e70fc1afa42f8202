#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/name_pattern.h"
#include "base/text.h"
#include "optim/layer_depths.h"
#include "optim/optim_options.h"

/// What `optim.no_decay` and `optim.groups` say of tensors by their names. No libtorch: `stretto
/// check` reads them by the same functions as training.
namespace stretto::optim {

using stretto::matches;

/// An entry of optim.groups: "PATTERN lr_scale=X weight_decay=Y".
struct ParameterGroup {
  std::string pattern;
  std::optional<double> lr_scale, weight_decay;
};

/// Why an entry cannot be read.
struct GroupProblem {
  std::string what, hint;
};

/// Reads an entry into `group`; what is wrong with it, or nothing.
inline std::optional<GroupProblem> read_group(const std::string& entry, ParameterGroup& group) {
  const auto quoted = [](const std::string& text) { return "`" + printable(text) + "`"; };
  static const std::vector<std::string> kSettings{"lr_scale", "weight_decay"};
  group = {};
  for (const auto& word : split_words(entry)) {
    if (group.pattern.empty()) {
      group.pattern = word;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || (key != "lr_scale" && key != "weight_decay")) {
      const std::string near = closest(key, kSettings);
      return GroupProblem{"in " + quoted(entry) + ", unknown setting " + quoted(word),
                          (near.empty() ? "" : "did you mean " + near + "? ") +
                              "known: lr_scale=NUMBER, weight_decay=NUMBER"};
    }
    const char *begin = word.data() + equals + 1, *end = word.data() + word.size();
    double value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end || !(value >= 0 && value < 1e30)) {
      return GroupProblem{
          "in " + quoted(entry) + ", " + quoted(word) + " needs a number of at least 0",
          "write for instance lr_scale=0.1"};
    }
    (key == "lr_scale" ? group.lr_scale : group.weight_decay) = value;
  }
  if (!group.pattern.empty() && (group.lr_scale || group.weight_decay)) return std::nullopt;
  return GroupProblem{quoted(entry) + " sets nothing",
                      "write \"PATTERN lr_scale=NUMBER weight_decay=NUMBER\""};
}

/// A tensor as patterns see it.
struct TensorName {
  std::string name;
  bool is_vector = false;  ///< of at most one dimension: biases, gains of norms
  /// What else a tied tensor is, `decoder.embedding.weight`. Only those patterns look at it that
  /// choose which tensors stay or are taken over; groups go by the name.
  std::vector<std::string> also = {};
};

/// Something that a tied parameter is beside the name that it is saved by.
struct TiedName {
  std::string name;       ///< "decoder.embedding.weight"
  std::string parameter;  ///< "embedding.weight"
};

/// Writes what tied tensors are into TensorName::also.
inline void add_tied_names(std::span<const TiedName> tied, std::vector<TensorName>& tensors) {
  for (TensorName& tensor : tensors) {
    for (const TiedName& other : tied) {
      if (other.parameter == tensor.name) tensor.also.push_back(other.name);
    }
  }
}

/// Whether a pattern matches the tensor by its name, or by what else it is.
inline bool matches_any_name(std::string_view pattern, const TensorName& tensor) {
  return matches(pattern, tensor.name) ||
         std::any_of(tensor.also.begin(), tensor.also.end(),
                     [&](const std::string& name) { return matches(pattern, name); });
}

/// Up to four names near to a pattern: `decoder.embedding.*` is near to `decoder.embed.weight`.
/// Spelling finds one, the longest common beginning the others.
inline std::string names_near(const std::string& pattern, std::span<const TensorName> tensors) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (const TensorName& tensor : tensors) names.push_back(tensor.name);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& name : names) {
    const auto mismatch = std::mismatch(pattern.begin(), pattern.end(), name.begin(), name.end());
    ranked.emplace_back(static_cast<size_t>(mismatch.first - pattern.begin()), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> shown;
  const std::string similar = closest(pattern, names);
  if (!similar.empty()) shown.push_back(similar);
  for (const auto& [common, name] : ranked) {
    if (shown.size() < kMost && name != similar) shown.push_back(name);
  }
  return join(shown, ", ");
}

/// Tells of a pattern that matches none of these tensors; nothing when it matches one.
inline std::optional<GroupProblem> matches_nothing(const std::string& pattern,
                                                   std::span<const TensorName> tensors) {
  for (const TensorName& tensor : tensors) {
    if (matches(pattern, tensor.name)) return std::nullopt;
  }
  return GroupProblem{"`" + printable(pattern) + "` matches no parameter",
                      "names near it: " + names_near(pattern, tensors)};
}

/// The same with what else tied tensors are.
inline std::optional<GroupProblem> matches_no_name(const std::string& pattern,
                                                   std::span<const TensorName> tensors) {
  std::vector<TensorName> all;
  for (const TensorName& tensor : tensors) {
    all.push_back({tensor.name});
    for (const auto& name : tensor.also) all.push_back({name});
  }
  return matches_nothing(pattern, all);
}

/// What may differ from tensor to tensor.
struct GroupSettings {
  double lr_scale = 1;
  double weight_decay = 0;
  /// Of optim.no_decay, and not given a decay by a group: layer-wise optimizers leave its rate
  /// alone. A decay of 0 by itself exempts nothing.
  bool exempt = false;
  /// Updates that pass before the tensor is stepped (train.unfreeze).
  int64_t begins = 0;

  bool operator==(const GroupSettings&) const = default;
};

/// "none" alone: optim.no_decay has no tensor.
inline bool exempts_nothing(const OptimOptions& options) {
  return options.no_decay == std::vector<std::string>{"none"};
}

inline bool in_no_decay(const OptimOptions& options, const TensorName& tensor) {
  if (options.no_decay.empty()) return tensor.is_vector;
  if (exempts_nothing(options)) return false;
  return matches_any(options.no_decay, tensor.name);
}

/// `optim.layer_decay` to the power of each tensor's depth (optim/layer_depths.h).
inline std::vector<double> layer_scales(const OptimOptions& options,
                                        std::span<const TensorName> tensors) {
  std::vector<double> scales(tensors.size(), 1.0);
  if (options.layer_decay == 1) return scales;
  std::vector<std::string> names;
  for (const TensorName& tensor : tensors) names.push_back(tensor.name);
  const auto depths = layer_depths(names);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = std::pow(options.layer_decay, static_cast<double>(depths[i]));
  }
  return scales;
}

/// The settings of each tensor, by `optim.weight_decay`, `optim.no_decay` and `groups`, of which
/// the first that matches counts. `optim.layer_decay` multiplies the rate of all.
///
/// The weight_decay of a group stands above optim.weight_decay, but it reaches the tensors of
/// optim.no_decay only when its pattern matches nothing else: "encoder.* weight_decay=0.1" means
/// the encoder's matrices, "*norm* weight_decay=0.1" does say that norms shall decay, and then
/// layer-wise optimizers scale their rate too. "encoder.* weight_decay=0" only spares the matrices
/// the decay: their rate is scaled as before.
inline std::vector<GroupSettings> settings_of(const OptimOptions& options,
                                              std::span<const ParameterGroup> groups,
                                              std::span<const TensorName> tensors) {
  std::vector<GroupSettings> settings;
  for (const TensorName& tensor : tensors) {
    const bool exempt = in_no_decay(options, tensor);
    settings.push_back({.weight_decay = exempt ? 0 : options.weight_decay, .exempt = exempt});
  }
  std::vector<bool> taken(tensors.size());
  for (const ParameterGroup& group : groups) {
    std::vector<size_t> matched;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (matches(group.pattern, tensors[i].name)) matched.push_back(i);
    }
    const bool names_the_exempt = std::all_of(
        matched.begin(), matched.end(), [&](size_t i) { return in_no_decay(options, tensors[i]); });
    for (const size_t i : matched) {
      if (taken[i]) continue;
      taken[i] = true;
      settings[i].lr_scale = group.lr_scale.value_or(1);
      if (!group.weight_decay || (settings[i].exempt && !names_the_exempt)) continue;
      settings[i].weight_decay = *group.weight_decay;
      if (*group.weight_decay > 0) settings[i].exempt = false;
    }
  }
  const auto scales = layer_scales(options, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) settings[i].lr_scale *= scales[i];
  return settings;
}

/// Why layers have no rates of their own though optim.layer_decay asks for it.
inline std::optional<GroupProblem> no_layers(const OptimOptions& options,
                                             std::span<const TensorName> tensors) {
  const auto in_layer = [](const TensorName& tensor) {
    return place_in_stack(tensor.name).has_value();
  };
  if (options.layer_decay == 1 || std::any_of(tensors.begin(), tensors.end(), in_layer)) {
    return std::nullopt;
  }
  return GroupProblem{"no tensor of this model is in a numbered layer (`layers.N.`)",
                      "leave it at 1, and give parts a rate of their own with optim.groups"};
}

}  // namespace stretto::optim
