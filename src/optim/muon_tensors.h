#pragma once

#include <string>
#include <vector>

#include "base/name_pattern.h"
#include "optim/group_options.h"
#include "optim/optim_options.h"

/// Which tensors `optim.name = "muon"` makes orthogonal steps for, by their names. No libtorch, as
/// optim/group_options.h.
namespace stretto::optim {

/// The matrices that Muon leaves to AdamW: `optim.muon_adam_tensors`, or by default what is looked
/// up by row (embeddings, positions, distances, filters of light convolutions) and what stands last
/// (output projections, heads).
inline std::vector<std::string> adam_patterns(const OptimOptions& options) {
  if (!options.muon_adam_tensors.empty()) return options.muon_adam_tensors;
  return {"*embedding*", "*positions*", "*segments*", "*relative_keys*", "*distance_bias*",
          "*.filters",   "output.*",    "outputs.*",  "head.*",          "heads.*"};
}

/// Whether Muon steps the tensor as a matrix; all others are AdamW's.
inline bool has_orthogonal_steps(const OptimOptions& options, const TensorName& tensor) {
  return !tensor.is_vector && !matches_any(adam_patterns(options), tensor.name);
}

}  // namespace stretto::optim
