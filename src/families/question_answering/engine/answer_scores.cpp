#include "families/question_answering/engine/answer_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "data/squad/code_points.h"

namespace stretto::tasks {
namespace {

using data::AnswerCandidate;
using data::AnswerChoice;
using Json = nlohmann::ordered_json;

std::vector<std::string> answers_of(const data::SquadQuestion& question) {
  std::vector<std::string> texts;
  for (const auto& answer : question.answers) texts.push_back(answer.text);
  return texts;
}

/// The text before no answer is weighed against it.
std::string best_text(const AnswerChoice& choice) {
  for (const auto& candidate : choice.candidates) {
    if (candidate.tokens.size() > 0) return candidate.text;
  }
  return "";
}

/// The candidate that was chosen; null for no answer.
const AnswerCandidate* chosen(const AnswerChoice& choice) {
  if (choice.text.empty()) return nullptr;
  const auto is_it = [&](const AnswerCandidate& one) { return one.text == choice.text; };
  const auto found = std::find_if(choice.candidates.begin(), choice.candidates.end(), is_it);
  return found == choice.candidates.end() ? nullptr : &*found;
}

/// One line of JSON: a value for each question, by its id.
std::string by_question(const data::SquadData& questions,
                        const std::function<Json(size_t question)>& value) {
  // No two ids are equal; looking for each among the others would take quadratic time.
  Json::object_t values;
  for (size_t i = 0; i < questions.questions.size(); ++i) {
    values.emplace_back(questions.questions[i].id, value(i));
  }
  return Json(std::move(values)).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Code points of a paragraph around its marks: all of them, if they are few.
data::Span shown_stretch(const std::vector<data::Span>& marks, int64_t size) {
  constexpr int64_t kShown = 1200, kBefore = 300;
  if (size <= kShown) return {.begin = 0, .end = size};
  int64_t begin = 0;
  if (!marks.empty()) begin = std::clamp<int64_t>(marks.front().begin - kBefore, 0, size - kShown);
  return {.begin = begin, .end = begin + kShown};
}

bool covers(data::Span mark, int64_t at) {
  return mark.begin <= at && at < mark.end;
}

/// @param answer  of the model; empty: none
std::vector<report::MarkedTextSample::Stretch> marked(const std::string& text, data::Span answer,
                                                      const std::vector<data::Span>& references) {
  const data::CodePoints characters(text);
  std::vector<data::Span> marks = references;
  if (answer.size() > 0) marks.insert(marks.begin(), answer);
  const data::Span shown = shown_stretch(marks, characters.size());
  std::set<int64_t> cuts{shown.begin, shown.end};
  for (const data::Span& mark : marks) {
    for (const int64_t at : {mark.begin, mark.end}) {
      cuts.insert(std::clamp(at, shown.begin, shown.end));
    }
  }
  std::vector<report::MarkedTextSample::Stretch> stretches;
  if (shown.begin > 0) stretches.push_back({.text = "… "});
  for (auto at = cuts.begin(); std::next(at) != cuts.end(); ++at) {
    const auto in_reference = [&](data::Span one) { return covers(one, *at); };
    stretches.push_back(
        {.text = std::string(characters.slice(*at, *std::next(at))),
         .is_output = covers(answer, *at),
         .is_reference = std::any_of(references.begin(), references.end(), in_reference)});
  }
  if (shown.end < characters.size()) stretches.push_back({.text = " …"});
  return stretches;
}

}  // namespace

metrics::SquadScore score_found(const experiment::Experiment& experiment,
                                const data::SquadData& questions, const FoundAnswers& found,
                                metrics::SquadVersion version) {
  const auto& options = experiment::questions_of(experiment);
  std::vector<metrics::AnsweredQuestion> asked;
  std::vector<metrics::PredictedAnswer> predicted;
  std::vector<metrics::NoAnswerProbability> none;
  const bool second = version == metrics::SquadVersion::kV2;
  for (size_t i = 0; i < questions.questions.size(); ++i) {
    const auto& question = questions.questions[i];
    const auto& choice = found.choices[i];
    asked.push_back({.id = question.id, .answers = answers_of(question)});
    predicted.push_back({.id = question.id, .text = second ? best_text(choice) : choice.text});
    none.push_back({.id = question.id, .probability = choice.none_score_difference});
  }
  const metrics::SquadOptions how{.version = version,
                                  .split = metrics::answer_split_named(options.data.answer_split),
                                  .no_answer_threshold = options.decode.none_threshold};
  if (!second) return metrics::score_answers(how, asked, predicted);
  return metrics::score_answers(how, asked, predicted, none);
}

std::string predictions_json(const data::SquadData& questions, const FoundAnswers& found) {
  return by_question(questions, [&](size_t i) { return Json(found.choices[i].text); });
}

std::string nbest_json(const data::QuestionWindows& windows, const FoundAnswers& found) {
  return by_question(windows.data(), [&](size_t i) {
    auto list = Json::array();
    for (const auto& one : found.choices[i].candidates) {
      Json entry{{"text", one.text}, {"probability", one.probability}, {"score", one.score}};
      if (one.tokens.size() > 0) entry["answer_start"] = characters_of(windows, i, one).begin;
      list.push_back(std::move(entry));
    }
    return list;
  });
}

std::string none_differences_json(const data::SquadData& questions, const FoundAnswers& found) {
  return by_question(questions,
                     [&](size_t i) { return Json(found.choices[i].none_score_difference); });
}

report::MarkedTextSample answer_sample(const data::QuestionWindows& windows, size_t question,
                                       const AnswerChoice& choice,
                                       const experiment::Experiment& experiment,
                                       metrics::SquadVersion version) {
  const auto& asked = windows.question(question);
  const auto& paragraph = windows.paragraph_of(question);
  const AnswerCandidate* candidate = chosen(choice);
  std::vector<data::Span> references;
  for (const auto& answer : asked.answers) {
    references.push_back(
        {.begin = answer.begin, .end = answer.begin + data::CodePoints(answer.text).size()});
  }
  const data::Span answer =
      candidate == nullptr ? data::Span{} : characters_of(windows, question, *candidate);
  const auto split =
      metrics::answer_split_named(experiment::questions_of(experiment).data.answer_split);
  const auto match = metrics::match_answer(version, choice.text, answers_of(asked), split);
  const bool is_exact = asked.answers.empty() ? choice.text.empty() : match.exact == 1;
  std::string note = is_exact ? "exact" : "f1 " + fixed(100 * match.f1, 0);
  if (candidate != nullptr) note += ", probability " + fixed(candidate->probability, 2);
  return {.request = asked.text,
          .text = marked(paragraph.text, answer, references),
          .output = choice.text,
          .references = asked.answers.empty() ? std::vector<std::string>{} : answers_of(asked),
          .note = std::move(note)};
}

}  // namespace stretto::tasks
