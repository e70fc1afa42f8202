#pragma once

#include <cstdint>

/// What commands are asked of tasks on encoded texts; no libtorch.
namespace stretto::tasks {

/// What a model of encoded texts is made for, in `stretto plan`.
struct TextSizes {
  int64_t rows = 0;     ///< of the embedding table
  double tokens = 128;  ///< of a sequence, its mean
};

}  // namespace stretto::tasks
