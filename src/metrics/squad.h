#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/answer_words.h"

/// Scores of extracted answers, equal to those of the official scripts of SQuAD 1.1 (Rajpurkar et
/// al. 2016) and 2.0 (Rajpurkar et al. 2018).
namespace stretto::metrics {

/// Whose rules hold; `squad1` and `squad2` of `stretto score --metric`.
enum class SquadVersion {
  /// Every question has an answer. F1 of a prediction without words is 0.
  kV1,
  /// A question without answers is answered by the empty text. Answers without words are left out;
  /// a prediction and an answer that both lack words match.
  kV2,
};

std::vector<std::string> squad_metric_names();
/// Throws Error(kUsage) for an unknown name, with the nearest known one.
SquadVersion squad_metric_named(const std::string& name);
std::string name_of(SquadVersion version);

/// How well one prediction matches; both from 0 to 1.
struct AnswerMatch {
  double exact = 0;  ///< 1 when the normalised words equal those of an answer
  double f1 = 0;     ///< of the bags of normalised words; the best answer counts
};

/// @param answers  at least one with kV1, otherwise the match is 0
AnswerMatch match_answer(SquadVersion version, std::string_view prediction,
                         std::span<const std::string> answers,
                         AnswerSplit split = AnswerSplit::kSpace);

struct AnsweredQuestion {
  std::string id;
  std::vector<std::string> answers;  ///< none: the text does not answer the question
};

struct PredictedAnswer {
  std::string id;
  std::string text;  ///< empty: no answer
};

/// How probable it is, by the system, that the text does not answer a question.
struct NoAnswerProbability {
  std::string id;
  double probability = 0;
};

struct SquadOptions {
  SquadVersion version = SquadVersion::kV1;
  AnswerSplit split = AnswerSplit::kSpace;
  /// kV2: a prediction counts as empty if its no-answer probability is above this.
  double no_answer_threshold = 1;
  std::string where = {};  ///< the files of the questions, for messages; empty = not told
};

/// Means over questions, in percent.
struct SquadPart {
  double exact_match = 0, f1 = 0;
  int64_t total = 0;
};

/// The largest score that a threshold of the no-answer probability reaches, in percent, and that
/// threshold.
struct SquadBest {
  double score = 0, threshold = 0;
};

struct SquadScore {
  SquadPart all;
  std::optional<SquadPart> has_answer, no_answer;  ///< kV2: of questions of a kind that occurs
  std::optional<SquadBest> best_exact, best_f1;    ///< kV2: with no-answer probabilities
  std::vector<std::string> missing;                ///< questions without a prediction
  std::vector<std::string> unknown;                ///< predictions without a question
};

/// Scores predictions, in any order, against questions.
///
/// A missing prediction scores 0, as in the script of 1.1. That of 2.0 warns of it and then ends
/// with an exception, so that no other number exists. `unknown` predictions do not count.
///
/// @param no_answer  in the order of their file: thresholds of equal probabilities are tried in it
/// Throws Error(kBadData) when there are no questions, for a question without answers with kV1, and
/// for a prediction without a probability when there are others.
SquadScore score_answers(const SquadOptions& options, std::span<const AnsweredQuestion> questions,
                         std::span<const PredictedAnswer> predictions,
                         std::optional<std::span<const NoAnswerProbability>> no_answer = {});

/// One line of JSON, numbers in full: metric, exact_match and f1, then what the script of that
/// version prints under its names (exact, total, HasAns_exact, …, best_f1_thresh), then the numbers
/// of missing and unknown predictions.
std::string to_json(const SquadScore& score, SquadVersion version);

}  // namespace stretto::metrics
