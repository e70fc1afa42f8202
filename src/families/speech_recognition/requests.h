#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the commands are asked of speech_recognition alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct SpeechEvalFiles {
  std::vector<std::string> data = {};  ///< instead of data.test
  std::string predictions;             ///< file for a line an utterance; empty = none
  std::string confusions;              ///< file for pairs of words; empty = none
};

/// `stretto infer`.
struct SpeechInferArguments {
  std::vector<std::string> data = {};  ///< as data.train takes them, beside files
  int64_t nbest = 0;                   ///< most probable labels; of texts, decode.nbest has it
  bool scores = false;                 ///< in front of each text
  bool log_probs = false;              ///< of each row, in JSON
  bool stream = false;                 ///< 16-bit PCM on stdin
};

}  // namespace stretto::tasks
