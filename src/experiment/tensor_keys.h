#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

/// Which keys of an experiment name tensors (experiment/tensor_patterns.h, whose source has these
/// functions), and the one among them that no name depends on.
namespace stretto::experiment {

/// All of these keys that are given.
std::vector<std::string> keys_that_name_tensors(const Experiment& options);

/// The experiment with an empty `model.init`: no name and no shape of a tensor depends on it, and
/// no model is made of entries that cannot be read.
Experiment without_init(Experiment options);

}  // namespace stretto::experiment
