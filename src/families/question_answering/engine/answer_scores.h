#pragma once

#include <string>

#include "data/squad/question_windows.h"
#include "families/question_answering/engine/answer_finder.h"
#include "families/question_answering/question_data.h"
#include "metrics/squad.h"
#include "report/sample.h"

namespace stretto::tasks {

/// Scores as the script of that version gives them to the predictions. For 2.0 the difference of
/// scores stands for the probability of no answer, and decode.none_threshold decides by it.
metrics::SquadScore score_found(const experiment::Experiment& experiment,
                                const data::SquadData& questions, const FoundAnswers& found,
                                metrics::SquadVersion version);

/// One JSON object from ids to texts, as SQuAD's scripts take predictions; of no answer "".
std::string predictions_json(const data::SquadData& questions, const FoundAnswers& found);

/// One JSON object from ids to the candidates of each question, best first: text, probability,
/// score (start plus end) and answer_start in code points.
std::string nbest_json(const data::QuestionWindows& windows, const FoundAnswers& found);

/// One JSON object from ids to the score of no answer minus that of the best answer, as SQuAD 2.0's
/// script takes probabilities of no answer.
std::string none_differences_json(const data::SquadData& questions, const FoundAnswers& found);

/// A question as a report shows it: answer and references marked in their paragraph, of which a
/// long one is cut around them.
report::MarkedTextSample answer_sample(const data::QuestionWindows& windows, size_t question,
                                       const data::AnswerChoice& choice,
                                       const experiment::Experiment& experiment,
                                       metrics::SquadVersion version);

}  // namespace stretto::tasks
