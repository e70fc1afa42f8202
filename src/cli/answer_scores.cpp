#include "cli/answer_scores.h"

#include <iostream>
#include <optional>

#include "base/first_names.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/input.h"
#include "data/squad/predictions.h"
#include "data/squad/squad_file.h"
#include "metrics/squad.h"

namespace stretto::cli {
namespace {

std::vector<metrics::AnsweredQuestion> read_questions(const std::vector<std::string>& paths) {
  std::vector<metrics::AnsweredQuestion> questions;
  const auto data = data::read_squad(paths, {.bad_answers = data::BadAnswers::kIgnore});
  for (const auto& question : data.questions) {
    metrics::AnsweredQuestion answered{.id = question.id, .answers = {}};
    for (const auto& answer : question.answers) answered.answers.push_back(answer.text);
    questions.push_back(std::move(answered));
  }
  return questions;
}

std::vector<metrics::PredictedAnswer> read_predictions(const std::string& path) {
  std::vector<metrics::PredictedAnswer> predictions;
  const auto text = read_text(path, data::kMaxSquadBytes);
  for (auto& [id, answer] : data::parse_predictions(text, input_name(path))) {
    predictions.push_back({.id = std::move(id), .text = std::move(answer)});
  }
  return predictions;
}

std::optional<std::vector<metrics::NoAnswerProbability>> read_probabilities(
    const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::vector<metrics::NoAnswerProbability> probabilities;
  const auto text = read_text(path, data::kMaxSquadBytes);
  for (auto& [id, probability] : data::parse_no_answer_probabilities(text, input_name(path))) {
    probabilities.push_back({.id = std::move(id), .probability = probability});
  }
  return probabilities;
}

std::string first_of(const std::vector<std::string>& ids) {
  constexpr size_t kShown = 5, kMostBytes = 60;
  return first_names(ids, kShown, kMostBytes);
}

void warn_of_ids(const metrics::SquadScore& score, const std::string& predictions) {
  const auto verb = [](const std::vector<std::string>& ids, const char* one, const char* several) {
    return ids.size() == 1 ? one : several;
  };
  if (const auto& ids = score.missing; !ids.empty()) {
    log::warn(with_thousands(static_cast<int64_t>(ids.size())) + " of " +
              counted(score.all.total, "question") +
              verb(ids, " has no prediction and scores 0: ", " have no prediction and score 0: ") +
              first_of(ids));
  }
  if (const auto& ids = score.unknown; !ids.empty()) {
    log::warn(input_name(predictions) + ": " +
              counted(static_cast<int64_t>(ids.size()), "prediction") +
              verb(ids, " belongs to no question and does", " belong to no question and do") +
              " not count: " + first_of(ids));
  }
}

std::string text_of(const metrics::SquadPart& part, int decimals) {
  return "exact_match " + fixed(part.exact_match, decimals) + ", f1 " + fixed(part.f1, decimals) +
         " (" + counted(part.total, "question") + ")\n";
}

std::string text_of(const metrics::SquadScore& score, int decimals) {
  std::string text = text_of(score.all, decimals);
  if (score.has_answer) text += "with an answer: " + text_of(*score.has_answer, decimals);
  if (score.no_answer) text += "without an answer: " + text_of(*score.no_answer, decimals);
  if (!score.best_exact || !score.best_f1) return text;
  const auto best = [decimals](const metrics::SquadBest& it) {
    return fixed(it.score, decimals) + " at " + shortest(it.threshold);
  };
  return text + "best thresholds: exact_match " + best(*score.best_exact) + ", f1 " +
         best(*score.best_f1) + "\n";
}

}  // namespace

void score_answers(const AnswerScoring& asked) {
  const metrics::SquadOptions options{.version = metrics::squad_metric_named(asked.metric),
                                      .split = metrics::answer_split_named(asked.split),
                                      .no_answer_threshold = asked.no_answer_threshold,
                                      .where = join(asked.questions, ", ")};
  const auto questions = read_questions(asked.questions);
  const auto predictions = read_predictions(asked.predictions);
  const auto probabilities = read_probabilities(asked.no_answer_probabilities);
  const auto score = metrics::score_answers(options, questions, predictions, probabilities);
  warn_of_ids(score, asked.predictions);
  if (asked.json) {
    std::cout << metrics::to_json(score, options.version) << "\n";
  } else {
    std::cout << text_of(score, asked.decimals);
  }
}

}  // namespace stretto::cli
