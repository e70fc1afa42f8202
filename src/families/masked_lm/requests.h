#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the commands are asked of masked language models alone; no libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct MaskedLmEvalFiles {
  std::vector<std::string> data;  ///< instead of data.test
};

/// `stretto infer`
struct MaskedLmInferArguments {
  int64_t nbest = 5;  ///< fillers for each mask
};

}  // namespace stretto::tasks
