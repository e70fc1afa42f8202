#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the commands are asked of masked language models alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct MaskedLmEvalFiles {
  std::vector<std::string> data;  ///< instead of data.test; empty = that, else data.valid
};

/// Input of `stretto infer`.
struct MaskedLmInferFiles {
  std::vector<std::string> files;  ///< as data::open_bytes() takes them, "-" = stdin; empty = stdin
  int64_t nbest = 5;               ///< fillers for each mask
};

}  // namespace stretto::tasks
