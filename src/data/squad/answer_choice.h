#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/squad/windows.h"

namespace stretto::data {

/// What a span model says of one window.
struct WindowScores {
  Span tokens;                    ///< those of the paragraph that the window has
  std::vector<float> start, end;  ///< scores of each of them as first and as last token
  float none = 0;                 ///< score of no answer: start plus end at the position for it
};

/// Where the tokens of a paragraph stand in its text.
struct ParagraphTokens {
  std::string_view text;
  std::span<const Span> offsets;  ///< in bytes of `text`, in ascending order
};

struct AnswerChoiceOptions {
  int64_t nbest = 20;              ///< at least 1
  int64_t max_answer_tokens = 30;  ///< at least 1
  bool may_have_none = false;      ///< SQuAD 2.0: the paragraph may not answer the question
  /// No answer is chosen if its score exceeds that of the best answer by more than this.
  double none_threshold = 0;
};

struct AnswerCandidate {
  std::string text;        ///< empty: no answer
  Span tokens;             ///< of the paragraph; none: no answer
  double score = 0;        ///< start plus end
  double probability = 0;  ///< softmax over the candidates
};

struct AnswerChoice {
  /// The chosen text; empty: no answer, or no span is possible.
  std::string text;
  /// Distinct texts, best first; with may_have_none also no answer, which is at the end if it is
  /// not among the best, as entry nbest + 1.
  std::vector<AnswerCandidate> candidates;
  /// With may_have_none: score of no answer minus that of the best span; the largest double if no
  /// span is possible, the smallest if no score of no answer is finite. SQuAD's script takes it as
  /// the probability of no answer: only its order matters.
  double none_score_difference = 0;
};

/// Chooses an answer from the scores of all windows of a question, as BERT's run_squad does: a span
/// counts in the window in which its first token has maximum context; no answer has the smallest of
/// its scores.
///
/// run_squad pairs the nbest start with the nbest end positions; this looks at all pairs, so that
/// the candidates are the best ones. Equal scores are in the order of windows, then of tokens.
/// Spans with a score that is not finite, or without text, do not count.
///
/// @param windows  in the order of cut_windows(). Throws std::invalid_argument for scores or
/// offsets
///                 of another number than the tokens.
AnswerChoice choose_answer(std::span<const WindowScores> windows, const ParagraphTokens& paragraph,
                           const AnswerChoiceOptions& options);

}  // namespace stretto::data
