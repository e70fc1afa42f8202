#pragma once

#include <string>
#include <vector>

/// What the commands are asked of language models alone; no libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct LanguageModelEvalFiles {
  std::vector<std::string> data;  ///< instead of data.test
  std::string per_line;           ///< file for the log-probability of each line; empty = none
};

}  // namespace stretto::tasks
