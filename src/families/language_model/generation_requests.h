#pragma once

#include <string>
#include <vector>

/// What `stretto infer` is asked of language models alone; no libtorch.
namespace stretto::tasks {

struct GenerationArguments {
  std::vector<std::string> prompts;  ///< in the place of lines; empty = lines are read
  bool stream = false;               ///< text is printed as soon as it is certain
  bool echo = false;                 ///< prompts are printed in front of what continues them
};

}  // namespace stretto::tasks
