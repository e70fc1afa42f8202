#include "metrics/squad.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"

namespace stretto::metrics {
namespace {

using Answer = std::vector<std::u32string>;

/// Answer that both have, each as often as the one that has it less often.
int64_t num_common(const Answer& a, const Answer& b) {
  std::map<std::u32string_view, int64_t> left;
  for (const auto& word : a) ++left[word];
  int64_t common = 0;
  for (const auto& word : b) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++common;
  }
  return common;
}

double word_f1(SquadVersion version, const Answer& prediction, const Answer& answer) {
  if (version == SquadVersion::kV2 && (prediction.empty() || answer.empty())) {
    return prediction.empty() && answer.empty() ? 1 : 0;
  }
  const auto common = static_cast<double>(num_common(prediction, answer));
  if (common == 0) return 0;
  const double precision = common / static_cast<double>(prediction.size());
  const double recall = common / static_cast<double>(answer.size());
  return 2 * precision * recall / (precision + recall);
}

/// What a question and its prediction give.
struct Row {
  const AnsweredQuestion* question = nullptr;
  const PredictedAnswer* prediction = nullptr;  ///< null = missing
  AnswerMatch raw;                              ///< before the threshold
  AnswerMatch match;                            ///< what counts
  bool has_answer() const { return !question->answers.empty(); }
};

void check_questions(const SquadOptions& options, std::span<const AnsweredQuestion> questions) {
  const std::string place = options.where.empty() ? "" : options.where + ": ";
  if (questions.empty()) {
    throw Error(ExitCode::kBadData, place + "there are no questions to score",
                "give the file that the predictions were made for");
  }
  if (options.version == SquadVersion::kV2) return;
  for (const auto& question : questions) {
    if (!question.answers.empty()) continue;
    throw Error(ExitCode::kBadData, place + "question " + printable(question.id) + " has no answer",
                "squad1 scores questions that all have answers; squad2 scores those without, too");
  }
}

std::vector<Row> match_rows(const SquadOptions& options,
                            std::span<const AnsweredQuestion> questions,
                            std::span<const PredictedAnswer> predictions) {
  std::unordered_map<std::string_view, const PredictedAnswer*> by_id;
  for (const auto& prediction : predictions) by_id.emplace(prediction.id, &prediction);
  std::vector<Row> rows;
  rows.reserve(questions.size());
  for (const auto& question : questions) {
    Row row{.question = &question};
    const auto found = by_id.find(question.id);
    if (found != by_id.end()) {
      row.prediction = found->second;
      row.raw =
          match_answer(options.version, row.prediction->text, question.answers, options.split);
      row.match = row.raw;
    }
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::string> unknown_ids(std::span<const AnsweredQuestion> questions,
                                     std::span<const PredictedAnswer> predictions) {
  std::unordered_set<std::string_view> known;
  for (const auto& question : questions) known.insert(question.id);
  std::vector<std::string> unknown;
  for (const auto& prediction : predictions) {
    if (!known.contains(prediction.id)) unknown.push_back(prediction.id);
  }
  return unknown;
}

std::unordered_map<std::string_view, double> probabilities_by_id(
    std::span<const NoAnswerProbability> no_answer, std::span<const Row> rows) {
  std::unordered_map<std::string_view, double> by_id;
  for (const auto& entry : no_answer) by_id.emplace(entry.id, entry.probability);
  for (const auto& row : rows) {
    if (row.prediction == nullptr || by_id.contains(row.question->id)) continue;
    throw Error(ExitCode::kBadData,
                "the no-answer probabilities lack question " + printable(row.question->id) +
                    ", which has a prediction",
                "give a probability for each prediction");
  }
  return by_id;
}

/// Takes predictions above the threshold for empty ones.
void apply_threshold(double threshold, const std::unordered_map<std::string_view, double>& by_id,
                     std::span<Row> rows) {
  for (auto& row : rows) {
    if (row.prediction == nullptr || !(by_id.at(row.question->id) > threshold)) continue;
    const double score = row.has_answer() ? 0 : 1;
    row.match = {.exact = score, .f1 = score};
  }
}

/// At first, no question is answered; then one after the other is, the most certain ones first.
SquadBest find_best(std::span<const Row> rows, std::span<const NoAnswerProbability> no_answer,
                    double AnswerMatch::*score) {
  std::unordered_map<std::string_view, const Row*> by_id;
  double current = 0;
  for (const auto& row : rows) {
    if (row.prediction == nullptr) continue;
    by_id.emplace(row.question->id, &row);
    current += row.has_answer() ? 0 : 1;
  }
  std::vector<NoAnswerProbability> sorted(no_answer.begin(), no_answer.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.probability < b.probability; });
  SquadBest best{.score = current};
  for (const auto& entry : sorted) {
    const auto found = by_id.find(entry.id);
    if (found == by_id.end()) continue;
    const Row& row = *found->second;
    if (row.has_answer()) {
      current += row.raw.*score;
    } else if (!row.prediction->text.empty()) {
      current -= 1;
    }
    if (current > best.score) best = {.score = current, .threshold = entry.probability};
  }
  best.score = 100 * best.score / static_cast<double>(rows.size());
  return best;
}

/// Means over the rows that `counts` chooses; nullopt where there are none.
template <class Counts>
std::optional<SquadPart> mean_of(std::span<const Row> rows, Counts counts) {
  SquadPart part;
  for (const auto& row : rows) {
    if (!counts(row)) continue;
    part.exact_match += row.match.exact;
    part.f1 += row.match.f1;
    ++part.total;
  }
  if (part.total == 0) return std::nullopt;
  const auto total = static_cast<double>(part.total);
  part.exact_match = 100 * part.exact_match / total;
  part.f1 = 100 * part.f1 / total;
  return part;
}

}  // namespace

AnswerMatch match_answer(SquadVersion version, std::string_view prediction,
                         std::span<const std::string> answers, AnswerSplit split) {
  std::vector<Answer> gold;
  for (const auto& answer : answers) {
    auto words = answer_words(answer, split);
    if (version == SquadVersion::kV1 || !words.empty()) gold.push_back(std::move(words));
  }
  if (version == SquadVersion::kV2 && gold.empty()) gold.emplace_back();
  const Answer words = answer_words(prediction, split);
  AnswerMatch best;
  for (const auto& answer : gold) {
    best.exact = std::max(best.exact, words == answer ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, word_f1(version, words, answer));
  }
  return best;
}

SquadScore score_answers(const SquadOptions& options, std::span<const AnsweredQuestion> questions,
                         std::span<const PredictedAnswer> predictions,
                         std::optional<std::span<const NoAnswerProbability>> no_answer) {
  check_questions(options, questions);
  auto rows = match_rows(options, questions, predictions);
  SquadScore score;
  if (no_answer && options.version == SquadVersion::kV2) {
    apply_threshold(options.no_answer_threshold, probabilities_by_id(*no_answer, rows), rows);
    score.best_exact = find_best(rows, *no_answer, &AnswerMatch::exact);
    score.best_f1 = find_best(rows, *no_answer, &AnswerMatch::f1);
  }
  score.all = *mean_of(rows, [](const Row&) { return true; });
  if (options.version == SquadVersion::kV2) {
    score.has_answer = mean_of(rows, [](const Row& row) { return row.has_answer(); });
    score.no_answer = mean_of(rows, [](const Row& row) { return !row.has_answer(); });
  }
  for (const auto& row : rows) {
    if (row.prediction == nullptr) score.missing.push_back(row.question->id);
  }
  score.unknown = unknown_ids(questions, predictions);
  return score;
}

std::string to_json(const SquadScore& score, SquadVersion version) {
  nlohmann::ordered_json json;
  json["metric"] = name_of(version);
  json["exact_match"] = score.all.exact_match;
  json["f1"] = score.all.f1;
  if (version == SquadVersion::kV2) json["exact"] = score.all.exact_match;
  json["total"] = score.all.total;
  const auto add_part = [&json](const std::string& name, const std::optional<SquadPart>& part) {
    if (!part) return;
    json[name + "_exact"] = part->exact_match;
    json[name + "_f1"] = part->f1;
    json[name + "_total"] = part->total;
  };
  add_part("HasAns", score.has_answer);
  add_part("NoAns", score.no_answer);
  const auto add_best = [&json](const std::string& name, const std::optional<SquadBest>& best) {
    if (!best) return;
    json[name] = best->score;
    json[name + "_thresh"] = best->threshold;
  };
  add_best("best_exact", score.best_exact);
  add_best("best_f1", score.best_f1);
  json["missing"] = score.missing.size();
  json["unknown"] = score.unknown.size();
  return json.dump();
}

}  // namespace stretto::metrics
