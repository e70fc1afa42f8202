#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::models {

/// `[model.adaptive_softmax]`: how the tokens of a vocabulary are divided among the softmaxes of an
/// AdaptiveHead (models/heads/adaptive.h), in the order of their ids. No libtorch.
struct AdaptiveOptions {
  /// Ends of all groups but the last: tokens below the first are the shortlist, the others
  /// clusters. Whole numbers; empty = there is one softmax.
  std::vector<double> cutoffs;
  /// A projection of its own has in cluster i, from 1, rows of width / div_value^i.
  double div_value = 4;

  static constexpr int64_t kMostCutoff = 1'000'000'000;

  static auto fields() {
    using namespace config;
    using O = AdaptiveOptions;
    return Fields{
        field(&O::cutoffs, "cutoffs",
              "where groups of tokens end, ascending, all but the last group: the tokens below the "
              "first have a softmax with a class for each further group, whose tokens have a "
              "softmax of their own. For vocabularies whose frequent tokens have the smallest ids, "
              "as those of tokenizer.type = \"word\"; empty = one softmax over all tokens",
              between(1, static_cast<double>(kMostCutoff)),
              {.unit = "tokens", .hidden_in_shapes = true})
            .also_called({"adaptive_cutoffs", "cutoff"}),
        field(&O::div_value, "div_value",
              "the matrices of each further group are narrower by this factor than those of the "
              "group before it",
              between(1, 1024))
            .also_called({"div_val", "adaptive_divisor", "adaptive_div_value"})
            .read_with_key("model.tie_embeddings", {"false"}),
    };
  }

  bool is_on() const { return !cutoffs.empty(); }
  /// The fewest tokens of a vocabulary that can be divided so; 0 = one softmax takes any number, or
  /// none can.
  int64_t least_tokens() const {
    return problem(kMostCutoff + 2).empty() ? begin_of(cutoffs.size() - 1) + 2 : 0;
  }

  /// Why a vocabulary of so many tokens cannot be divided so; empty = it can.
  std::string problem(int64_t num_classes) const {
    if (cutoffs.empty()) return "there is no cutoff";
    if (cutoffs.front() < 1) return "the shortlist has no token";
    for (const double cutoff : cutoffs) {
      if (cutoff == std::floor(cutoff) && cutoff >= 1 && cutoff <= double{kMostCutoff}) continue;
      return "cutoffs must be whole numbers from 1 to " + std::to_string(kMostCutoff);
    }
    for (size_t i = 0; i < cutoffs.size(); ++i) {
      const int64_t begin = begin_of(i), end = end_of(i, num_classes);
      if (end - begin < 2) {
        return "from cutoff " + std::to_string(begin) + " to " + std::to_string(end) +
               " there are fewer than two tokens";
      }
    }
    return div_value >= 1 ? "" : "div_value is below 1";
  }

  /// The tokens of cluster number i, counted from 0: [begin_of(i), end_of(i)).
  int64_t begin_of(size_t i) const { return static_cast<int64_t>(cutoffs[i]); }
  int64_t end_of(size_t i, int64_t num_classes) const {
    return i + 1 < cutoffs.size() ? begin_of(i + 1) : num_classes;
  }
  /// The width of the rows of its own matrix, behind rows of so many columns.
  int64_t width_of(size_t i, int64_t width) const {
    double narrow = static_cast<double>(width);
    for (size_t k = 0; k <= i; ++k) narrow /= div_value;
    return std::max<int64_t>(static_cast<int64_t>(narrow), 1);
  }

  /// Parameters of matrices of its own, for a vocabulary that can be divided.
  int64_t num_parameters(int64_t width, int64_t num_classes) const {
    int64_t sum = (begin_of(0) + static_cast<int64_t>(cutoffs.size())) * width;
    for (size_t i = 0; i < cutoffs.size(); ++i) {
      sum += width_of(i, width) * (width + end_of(i, num_classes) - begin_of(i));
    }
    return sum;
  }
};

/// What help says of the section.
inline constexpr const char* kAdaptiveHelp =
    "the output projection of a large vocabulary, by groups of tokens (Grave et al. 2017)";

}  // namespace stretto::models
