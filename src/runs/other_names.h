#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Weights that another run has under other names: `decoders.de.…` of one of several parts, and
/// `decoder.…` where there is a single one; `encoders.0.…` and `encoder.…` alike.
namespace stretto::runs {

/// The shape of each tensor by name.
using NamedShapes = std::map<std::string, std::vector<int64_t>>;

/// Entries of `train.init_only` for a model whose part has another name in the other run:
/// "encoder.*" and so on for what has the same name in both, then "decoders.de.* = decoder.*". A
/// part has another name if all of its tensors are there under the other name, in the same shapes,
/// and none under its own. Where several parts of the other run fit, the first is taken.
///
/// Empty if there is no such part, or if a tensor of one name has two shapes: train.init_only
/// would be refused.
/// @param model   the tensors that are to be filled
/// @param stored  those of the other run's checkpoint
std::vector<std::string> entries_for_other_names(const NamedShapes& model,
                                                 const NamedShapes& stored);

}  // namespace stretto::runs
