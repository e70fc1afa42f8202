#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the commands are asked of image_classification alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct ImageEvalFiles {
  std::vector<std::string> data = {};  ///< instead of data.test
  std::string predictions;             ///< file for a line a picture; empty = none
};

/// Output of `stretto infer`.
struct ImageInferArguments {
  int64_t nbest = 0;    ///< most probable classes of each picture; 0 = not given
  bool scores = false;  ///< their probabilities behind them
};

}  // namespace stretto::tasks
