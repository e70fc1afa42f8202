#pragma once

#include <string>
#include <vector>

/// What the commands are asked of speech_synthesis alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct SynthesisEvalFiles {
  std::vector<std::string> data = {};  ///< instead of data.test
  std::string predictions = {};        ///< file for a line a clip; empty = none
};

/// `stretto infer`.
struct SynthesisInferArguments {
  std::string output = {};   ///< folder for a sound a line
  std::string speaker = {};  ///< empty = the first one of the run
  std::string style = {};    ///< file of a sound in the wanted style; empty = the mean style
};

}  // namespace stretto::tasks
