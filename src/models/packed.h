#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "data/batch.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// One side of a batch as tensors on `device`; with `sample_ids`, the keys of dropout masks too.
nn::PackedRows pack(const data::PackedTokens& tokens, const std::vector<int64_t>* sample_ids,
                    c10::Device device);

/// The decoder's input for targets that end with end-of-sentence: each sequence shifted right by
/// one, with beginning-of-sentence in front and the end left out. Lengths stay as they are.
data::PackedTokens shift_right(const data::PackedTokens& targets);

}  // namespace stretto::models
