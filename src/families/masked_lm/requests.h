#pragma once

#include <cstdint>

/// What the commands are asked of masked language models alone; no libtorch.
namespace stretto::tasks {

/// `stretto infer`
struct MaskedLmInferArguments {
  int64_t nbest = 5;  ///< fillers for each mask
};

}  // namespace stretto::tasks
