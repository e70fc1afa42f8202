#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

/// What `stretto score --metric squad1|squad2` is asked for.
struct AnswerScoring {
  std::string metric;                   ///< one of metrics::squad_metric_names()
  std::string split;                    ///< one of metrics::answer_split_names()
  std::vector<std::string> questions;   ///< files of SQuAD, whose questions are taken together
  std::string predictions;              ///< "" or "-" is stdin
  std::string no_answer_probabilities;  ///< a file; "": none
  double no_answer_threshold = 1;
  int decimals = 2;
  bool json = false;
};

/// Prints the scores on stdout, and warns of questions without a prediction and of predictions
/// without a question. Throws as the readers of data/squad and metrics::score_answers() do.
void score_answers(const AnswerScoring& asked);

}  // namespace stretto::cli
