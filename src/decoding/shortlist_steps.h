#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "decoding/step_model.h"

namespace stretto::decoding {

/// A model whose sources have some tokens alone: probabilities are among them, all others have
/// none. A step computes the whole vocabulary all the same; a StreamModel does not.
/// @param candidates        of each source, ascending, each once; empty = all tokens
/// @param lanes_per_source  that the model was started with
std::unique_ptr<StepModel> with_shortlists(std::unique_ptr<StepModel> model,
                                           std::vector<std::vector<int64_t>> candidates,
                                           int64_t lanes_per_source);

}  // namespace stretto::decoding
