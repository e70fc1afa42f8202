#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/loading.h"
#include "data/squad/answer_choice.h"
#include "data/squad/question_windows.h"
#include "distributed/process_group.h"
#include "models/text_model.h"
#include "tasks/cost_batches.h"

namespace stretto::tasks {

struct AnswerFinding {
  data::AnswerChoiceOptions choice = {};
  /// Tokens of a batch of windows, 0 = as fits the device; a longer window is a batch by itself.
  int64_t max_tokens = 0;
  int64_t max_samples = 0;  ///< windows of a batch; 0 = any number
  /// Candidates of each question that are handed on; 0 = all that choice.nbest allows.
  int64_t num_candidates = 0;
  /// Questions are shared out among these processes. Every one gets the whole result, which does
  /// not depend on their number.
  distributed::ProcessGroup group = {};
  data::Loading loading = {};  ///< of their windows, as train::EvaluationSetup says

  /// Neighbouring questions or windows by their rows, the same whatever the number of processes.
  CostBatchOptions batches() const { return {.max_cost = max_tokens, .max_samples = max_samples}; }
};

struct FoundAnswers {
  std::vector<data::AnswerChoice> choices;  ///< of each question
  /// The first question of whose windows some score is infinite or NaN; -1 = there is none.
  int64_t overflowed = -1;
  double loss_sum = 0;       ///< of the windows that have a label
  int64_t num_labelled = 0;  ///< those windows
  double loss() const {
    return num_labelled > 0 ? loss_sum / static_cast<double>(num_labelled) : 0;
  }
};

/// The answers to some neighbouring questions, whose windows are read together.
struct StretchAnswers {
  std::vector<data::AnswerChoice> choices;  ///< of each question
  std::vector<bool> overflowed;             ///< of each question: some score is infinite or NaN
  double loss_sum = 0;                      ///< as in FoundAnswers
  int64_t num_labelled = 0;
};
/// @param finding  with max_tokens; its group and its loading do not count
StretchAnswers answer_stretch(const std::vector<std::shared_ptr<models::TextModel>>& models,
                              const data::QuestionWindows& windows, data::Span questions,
                              const AnswerFinding& finding);

/// Rows of all windows of a question: what it costs a model.
int64_t num_rows_of(const data::QuestionWindows& windows, size_t question);

/// The answers to all questions, each chosen from the scores of all of its windows.
/// @param models  one, or several whose mean of scores counts
FoundAnswers find_answers(const std::vector<std::shared_ptr<models::TextModel>>& models,
                          const data::QuestionWindows& windows, const AnswerFinding& finding);

/// Code points of the paragraph that a candidate is; of no answer {0, 0}.
data::Span characters_of(const data::QuestionWindows& windows, size_t question,
                         const data::AnswerCandidate& candidate);

}  // namespace stretto::tasks
