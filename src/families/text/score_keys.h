#pragma once

#include <string>

#include "experiment/score_spec.h"

/// Scores that several families of text have.
namespace stretto::tasks {

/// Keys of scores. Each stands once: the list of a family (NAME_scores) describes it, which way is
/// better too, and values of validations and of `eval` are named by it. Keys of one family alone
/// stand in its display.
namespace score_key {
inline constexpr const char *kLoss = "loss", *kNll = "nll", *kPpl = "ppl", *kAccuracy = "accuracy",
                            *kF1 = "f1";
}  // namespace score_key

/// Negative log-likelihood of a token. It ranks runs in the place of the loss, which may have more
/// in it.
experiment::ScoreSpec nll_score();

/// Perplexity, exp of the nll. @param of  "of masked tokens"; empty = of all
experiment::ScoreSpec ppl_score(const std::string& of = "");

}  // namespace stretto::tasks
