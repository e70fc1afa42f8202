#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"
#include "data/squad/answer_choice.h"

namespace stretto::data {

/// `[decode]` of tasks whose answers stand in a paragraph: from the scores of windows to an answer.
struct AnswerOptions {
  int64_t nbest = 20;
  int64_t max_answer_tokens = 30;
  double none_threshold = 0;

  AnswerChoiceOptions choice(bool may_have_none) const {
    return {.nbest = nbest,
            .max_answer_tokens = max_answer_tokens,
            .may_have_none = may_have_none,
            .none_threshold = none_threshold};
  }

  static auto fields() {
    using namespace config;
    using O = AnswerOptions;
    return Fields{
        field(&O::nbest, "nbest", "distinct answers that are kept for each question",
              between(1, 1000), {.unit = "answers", .change = Change::kScoring})
            .also_called({"n_best_size", "n_best", "top_k"}),
        field(&O::max_answer_tokens, "max_answer_tokens", "longest answer", between(1, 100000),
              {.unit = "tokens", .change = Change::kScoring})
            .also_called({"max_answer_length", "max_answer_len"}),
        field(&O::none_threshold, "none_threshold",
              "there is no answer if its score exceeds that of the best answer by more than this; "
              "read where data.version allows questions without one",
              any(), {.change = Change::kScoring})
            .also_called({"null_score_diff_threshold", "null_threshold", "na_prob_thresh"}),
    };
  }
};

}  // namespace stretto::data
