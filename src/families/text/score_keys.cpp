#include "families/text/score_keys.h"

namespace stretto::tasks {

experiment::ScoreSpec nll_score() {
  return {.style = {.name = score_key::kNll, .column = "NLL"},
          .also_called = {"loss", "ce", "cross_entropy", "ppl", "perplexity", "valid_loss",
                          "eval_loss"}};
}

experiment::ScoreSpec ppl_score(const std::string& of) {
  return {.style = {.name = score_key::kPpl,
                    .remark = (of.empty() ? "" : of + ", ") + "exp of nll",
                    .decimals = 2,
                    .progress = "ppl",
                    .chart = "Perplexity" + (of.empty() ? "" : " " + of),
                    .axis = report::Axis::kLogarithmic,
                    .tile = "Perplexity",
                    .column = "Perplexity",
                    .column_decimals = 2,
                    .exponential_of = score_key::kNll},
          .ranks = false};
}

}  // namespace stretto::tasks
