#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "nn/init_rules.h"

/// What a part multiplies its token vectors by, and how the rows of a table of tokens start. No
/// libtorch.
namespace stretto::models {

/// How parts of one kind embed tokens. `scale` is `model.embedding_scale`.
///
///     kind             "auto" multiplies by    rows that no factor multiplies start
///     kTransformer     sqrt(D)                 N(0, D^-0.5) (Vaswani et al. 2017, section 3.4)
///     kConvolutional   1                       N(0, 0.1) (Gehring et al. 2017, section 3.5)
///     kRecurrent       1                       in ±init_bound (Wu et al. 2016), as its matrices;
///                                              Xavier-uniform where that is 0
///
/// Rows that are multiplied start N(0, D^-0.5), whoever reads them.
struct EmbeddingKind {
  /// Where several parts look up one table, the last of these decides how its rows start.
  enum class Part : uint8_t { kRecurrent, kConvolutional, kTransformer };
  Part part = Part::kTransformer;
  double init_bound = 0;  ///< of kRecurrent

  bool scales(const std::string& scale) const {
    return scale == "sqrt" || (scale == "auto" && part == Part::kTransformer);
  }
  /// The part whose first rows these are.
  Part first_rows_of(const std::string& scale) const {
    return scales(scale) ? Part::kTransformer : part;
  }
  nn::InitRule first_rows(const std::string& scale, int64_t d_model) const {
    using nn::Distribution;
    switch (first_rows_of(scale)) {
      case Part::kRecurrent:
        if (init_bound > 0) {
          return {.distribution = Distribution::kUniform, .number = init_bound};
        }
        return {.distribution = Distribution::kXavierUniform, .number = 1};
      case Part::kConvolutional:
        return {.distribution = Distribution::kNormal, .number = 0.1};
      case Part::kTransformer:
        break;
    }
    return nn::normal_of_width(d_model);
  }
};

inline EmbeddingKind recurrent_embedding(double init_bound) {
  return {.part = EmbeddingKind::Part::kRecurrent, .init_bound = init_bound};
}
inline EmbeddingKind convolutional_embedding() {
  return {.part = EmbeddingKind::Part::kConvolutional};
}

/// The kind that a part's options name: their own embedding_kind(), or without one a Transformer's.
template <class Options>
EmbeddingKind embedding_kind(const Options& part) {
  if constexpr (requires { part.embedding_kind(); }) {
    return part.embedding_kind();
  } else {
    return {};
  }
}

/// How the rows of a table start that several parts look up: as the last of EmbeddingKind::Part
/// among them says, and of equal ones the first part.
/// @param parts  at least one
inline nn::InitRule shared_rows(std::span<const EmbeddingKind> parts, const std::string& scale,
                                int64_t d_model) {
  const auto weaker = [&](const EmbeddingKind& a, const EmbeddingKind& b) {
    return a.first_rows_of(scale) < b.first_rows_of(scale);
  };
  return std::max_element(parts.begin(), parts.end(), weaker)->first_rows(scale, d_model);
}

}  // namespace stretto::models
