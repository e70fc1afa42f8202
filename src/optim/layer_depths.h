#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

/// How far below the top of its model each tensor stands, by its name alone. No libtorch, as
/// optim/group_options.h.
namespace stretto::optim {

/// The place of a tensor in a stack of layers: `encoder.layers.3.ffn.up.weight` is in layer 3 of
/// `encoder.`. A model that is one stack has an empty one.
struct StackPlace {
  std::string stack;
  int64_t layer = 0;
};

/// By the first `layers.N.` of a name; nothing without one.
inline std::optional<StackPlace> place_in_stack(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  for (size_t at = name.find(kLayers); at != std::string_view::npos;
       at = name.find(kLayers, at + 1)) {
    if (at > 0 && name[at - 1] != '.') continue;
    const std::string_view rest = name.substr(at + kLayers.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    constexpr size_t kMostDigits = 6;
    if (digits == 0 || digits > kMostDigits || digits == rest.size() || rest[digits] != '.') {
      continue;
    }
    return StackPlace{std::string(name.substr(0, at)),
                      std::stoll(std::string(rest.substr(0, digits)))};
  }
  return std::nullopt;
}

/// Whether a tensor outside of layers stands below them: a part of its name is `positions`,
/// `segments`, `patches`, `whiten` or `class_token`, or has `embedding` in it.
inline bool is_below_layers(std::string_view name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part == "positions" || part == "segments" || part == "patches" || part == "whiten" ||
        part == "class_token" || part.find("embedding") != std::string_view::npos) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

/// The depth of each tensor, 0 = the top, as BEiT counts (Bao et al. 2021, arXiv:2106.08254):
///
///     head, last norm, all else      0
///     layer N of a stack of L        L - N: 1 for the last layer, L for the first
///     embeddings, positions          L + 1
///
/// Each stack (an encoder, a decoder) is counted by itself. A table that stands in no stack, since
/// several share it, is as deep as that of the highest stack.
inline std::vector<int64_t> layer_depths(std::span<const std::string> names) {
  std::map<std::string, int64_t> layers;  // of each stack
  int64_t most = 0;
  for (const std::string& name : names) {
    const auto place = place_in_stack(name);
    if (!place) continue;
    int64_t& count = layers[place->stack];
    count = std::max(count, place->layer + 1);
    most = std::max(most, count);
  }
  std::vector<int64_t> depths;
  for (const std::string& name : names) {
    if (const auto place = place_in_stack(name)) {
      depths.push_back(layers[place->stack] - place->layer);
      continue;
    }
    int64_t depth = 0;
    if (most > 0 && is_below_layers(name)) {
      depth = most + 1;
      for (const auto& [stack, count] : layers) {
        if (name.starts_with(stack) && !stack.empty()) depth = count + 1;
      }
    }
    depths.push_back(depth);
  }
  return depths;
}

}  // namespace stretto::optim
