#include "families/question_answering/engine/answer_scores.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/squad/predictions.h"
#include "families/question_answering/question_answering_options.h"
#include "tests/families/question_answering/engine/small_questions.h"

namespace stretto::tasks {
namespace {

experiment::Experiment questions_experiment() {
  experiment::Experiment e;
  e.task.select("question_answering");
  return e;
}

/// A choice with no answer beside the best one.
data::AnswerChoice choice(const std::string& best, data::Span tokens, double difference,
                          double threshold = 0) {
  data::AnswerChoice made{.text = difference > threshold ? "" : best,
                          .candidates = {{best, tokens, 1, 0.6}, {"", {}, 1 + difference, 0.4}},
                          .none_score_difference = difference};
  if (difference > 0) std::swap(made.candidates[0], made.candidates[1]);
  return made;
}

/// Answers to small_questions(): right, half right, wrongly answered, and in doubt.
FoundAnswers found_answers(double threshold = 0) {
  return {.choices = {choice("Änna", {0, 1}, -3), choice("the sea", {0, 1}, -2),
                      choice("Anna", {0, 1}, -1), choice("Anna", {3, 4}, 0.5, threshold)}};
}

TEST(AnswerScores, CountAsTheScriptOfTheVersionDoes) {
  const auto e = questions_experiment();
  const auto score =
      score_found(e, testing::small_questions(), found_answers(), metrics::SquadVersion::kV2);
  EXPECT_EQ(score.all.total, 4);
  EXPECT_DOUBLE_EQ(score.all.exact_match, 25);
  ASSERT_TRUE(score.has_answer && score.no_answer);
  EXPECT_DOUBLE_EQ(score.no_answer->f1, 0);
  // near the sea: "the" is no word, one of two is found: 2 * 1 * 0.5 / 1.5.
  EXPECT_NEAR(score.has_answer->f1, 100 * (1 + 2.0 / 3 + 0) / 3, 1e-9);
  ASSERT_TRUE(score.best_f1);
  EXPECT_EQ(score.best_f1->threshold, -2) << "the wrong answer costs as much as the last one gains";
}

TEST(AnswerScores, GoByTheThresholdThatChoseTheAnswers) {
  auto e = questions_experiment();
  e.task.as<experiment::QuestionAnsweringOptions>().decode.none_threshold = 1;
  const auto score =
      score_found(e, testing::small_questions(), found_answers(1), metrics::SquadVersion::kV2);
  EXPECT_DOUBLE_EQ(score.all.exact_match, 50);
}

TEST(AnswerScores, AreThoseOfThePredictionsThatAreWritten) {
  const auto data = testing::small_questions();
  const auto found = found_answers();
  std::vector<metrics::PredictedAnswer> predicted;
  for (const auto& [id, text] : data::parse_predictions(predictions_json(data, found), "x")) {
    predicted.push_back({id, text});
  }
  std::vector<metrics::AnsweredQuestion> asked;
  for (const auto& question : data.questions) {
    asked.push_back({question.id, {}});
    for (const auto& answer : question.answers) asked.back().answers.push_back(answer.text);
  }
  const auto again =
      metrics::score_answers({.version = metrics::SquadVersion::kV2}, asked, predicted);
  const auto score = score_found(questions_experiment(), data, found, metrics::SquadVersion::kV2);
  EXPECT_EQ(again.all.exact_match, score.all.exact_match);
  EXPECT_EQ(again.all.f1, score.all.f1);
}

TEST(AnswerScores, PredictionsAreAnObjectOfTexts) {
  EXPECT_EQ(predictions_json(testing::small_questions(), found_answers()),
            "{\"a\":\"Änna\",\"b\":\"the sea\",\"c\":\"Anna\",\"d\":\"\"}\n");
}

TEST(AnswerScores, DifferencesAreAnObjectOfNumbers) {
  const auto numbers = data::parse_no_answer_probabilities(
      none_differences_json(testing::small_questions(), found_answers()), "x");
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_EQ(numbers[3], (std::pair<std::string, double>{"d", 0.5}));
}

TEST(AnswerScores, CandidatesHaveTheirPlaceInCharacters) {
  const auto json = nlohmann::json::parse(nbest_json(*testing::small_windows(), found_answers()));
  EXPECT_EQ(json.at("a").at(0).at("answer_start"), 0);
  EXPECT_EQ(json.at("d").at(1).at("text"), "Anna");
  EXPECT_EQ(json.at("d").at(1).at("answer_start"), 14);
  EXPECT_FALSE(json.at("d").at(0).contains("answer_start")) << "no answer has no place";
}

using Stretch = report::MarkedTextSample::Stretch;

TEST(AnswerSamples, MarkAnswerAndReferencesInTheParagraph) {
  const auto e = questions_experiment();
  const auto windows = testing::small_windows();
  const auto sample =
      answer_sample(*windows, 3, choice("Anna.", {3, 5}, -1), e, metrics::SquadVersion::kV2);
  EXPECT_EQ(sample.request, "Who?");
  EXPECT_EQ(sample.output, "Anna.");
  EXPECT_EQ(sample.references, (std::vector<std::string>{"Anna", "Oslo"}));
  EXPECT_EQ(sample.text, (std::vector<Stretch>{{"In ", false, false},
                                               {"Oslo", false, true},
                                               {" lives ", false, false},
                                               {"Anna", true, true},
                                               {".", true, false}}));
  EXPECT_EQ(sample.note, "exact, probability 0.60") << "punctuation does not count";
}

TEST(AnswerSamples, OfNoAnswerMarkTheReferencesAlone) {
  const auto e = questions_experiment();
  const auto sample = answer_sample(*testing::small_windows(), 2, choice("Anna", {3, 4}, 1), e,
                                    metrics::SquadVersion::kV2);
  EXPECT_EQ(sample.output, "");
  EXPECT_EQ(sample.note, "exact");
  EXPECT_EQ(sample.text, (std::vector<Stretch>{{"In Oslo lives Anna.", false, false}}));
}

TEST(AnswerSamples, CutALongParagraphAroundTheAnswer) {
  const std::string before(4000, 'x');
  data::SquadData data{
      .paragraphs = {{.text = before + " Anna " + before, .title = ""}},
      .questions = {{.id = "q", .text = "Who?", .paragraph = 0, .answers = {{"Anna", 4001}}}}};
  const data::QuestionWindows windows(data, *testing::small_tokenizer(), {});
  const auto sample =
      answer_sample(windows, 0, {}, questions_experiment(), metrics::SquadVersion::kV1);
  std::string shown;
  for (const auto& stretch : sample.text) shown += stretch.text;
  EXPECT_LT(shown.size(), 1300u);
  EXPECT_TRUE(shown.starts_with("… x"));
  EXPECT_TRUE(shown.ends_with("x …"));
  EXPECT_NE(shown.find(" Anna "), std::string::npos);
}

}  // namespace
}  // namespace stretto::tasks
