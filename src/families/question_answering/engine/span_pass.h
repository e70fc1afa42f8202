#pragma once

#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/squad/answer_choice.h"
#include "data/squad/question_windows.h"
#include "models/text_model.h"
#include "train/prepared.h"

namespace stretto::tasks {

/// A batch of windows (data/squad/question_windows.h) behind a model.
/// N rows of all sequences, B sequences.
struct SpanPass {
  /// fp32 [N, 2]: of each row as the first and as the last of an answer; 0 where none may begin or
  /// end, which the last layer does not compute.
  at::Tensor scores;
  models::SpanRows rows;
};

/// Where the answers of a batch begin and end: int64 [B], each row counted in its sequence.
struct SpanTargets {
  at::Tensor begins, ends;
};

/// A batch with its windows as rows(0), the rows that an answer may begin or end at, and, where it
/// has the column data::kAnswerRows, its answers.
train::Prepared prepare_windows(data::Batch batch, const models::TextModel& model);

/// Throws std::out_of_range for a batch without answers.
SpanTargets span_targets(const train::Prepared& batch);

/// Scores of a batch. Reads no answers.
SpanPass span_pass(models::TextModel& model, const train::Prepared& batch,
                   const models::ForwardContext& context);

/// The same by several models together: the mean of their scores, outside training.
SpanPass span_pass(const std::vector<std::shared_ptr<models::TextModel>>& models,
                   const train::Prepared& batch);

/// Cross entropy of begin and end, their mean, of each sequence: [B], differentiable.
at::Tensor losses_of(const SpanPass& pass, const SpanTargets& targets);

/// How many sequences have their best begin and their best end at the answer: a scalar.
at::Tensor num_right(const SpanPass& pass, const SpanTargets& targets);

/// The scores of one window as the choice of an answer takes them.
/// @param scores  fp32 on the CPU, [rows of the window, 2]
data::WindowScores window_scores(const data::QuestionWindows& windows, int64_t window,
                                 const at::Tensor& scores);

}  // namespace stretto::tasks
