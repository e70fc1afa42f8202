#pragma once

#include <string>
#include <vector>

/// What the commands are asked of text_classification alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct TextClassificationEvalFiles {
  std::vector<std::string> data = {};  ///< instead of data.test
  std::string predictions;             ///< file for a line a text; empty = none
};

/// Output of `stretto infer`.
struct TextClassificationInferArguments {
  bool scores = false;  ///< probabilities of all labels behind the label
};

}  // namespace stretto::tasks
