#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stretto::decoding {

/// The `count` likeliest tokens of a row of log-probabilities, likeliest first, equal ones by
/// ascending id. Those of -inf are left out. One pass over the row, without sorting it: meant for a
/// count far below the vocabulary.
std::vector<int64_t> likeliest_tokens(std::span<const float> row, size_t count);

}  // namespace stretto::decoding
