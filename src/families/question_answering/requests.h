#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the command line asks of question answering. No libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct QuestionEvalFiles {
  std::vector<std::string> data = {};  ///< instead of data.test
  std::string predictions;             ///< where to write texts by id; empty = nowhere
  std::string nbest;                   ///< where to write candidates by id
  std::string none_scores;             ///< where to write differences of scores by id
};

/// `stretto infer`
struct QuestionInferArguments {
  bool scores = false;  ///< probability and text, separated by a tab
  int64_t nbest = 1;    ///< answers that are printed for each question
};

}  // namespace stretto::tasks
