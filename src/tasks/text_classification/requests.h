#pragma once

#include <string>
#include <vector>

/// What the commands are asked of text_classification alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct TextClassificationEvalFiles {
  std::vector<std::string> data;  ///< empty = data.test, else data.valid
  std::string predictions;        ///< file for a line a text; empty = none
};

/// Input and output of `stretto infer`.
struct TextClassificationInferFiles {
  std::vector<std::string> files;  ///< as data::open_bytes() takes them, "-" = stdin; empty = stdin
  bool scores = false;             ///< probabilities of all labels behind the label
};

}  // namespace stretto::tasks
