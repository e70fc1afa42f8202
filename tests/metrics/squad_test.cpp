#include "metrics/squad.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::metrics {
namespace {

using Answers = std::vector<std::string>;
using Questions = std::vector<AnsweredQuestion>;
using Predictions = std::vector<PredictedAnswer>;
using Probabilities = std::vector<NoAnswerProbability>;

const SquadOptions kSquad1{.version = SquadVersion::kV1};
const SquadOptions kSquad2{.version = SquadVersion::kV2};

AnswerMatch match1(std::string_view prediction, const Answers& answers) {
  return match_answer(SquadVersion::kV1, prediction, answers);
}

AnswerMatch match2(std::string_view prediction, const Answers& answers) {
  return match_answer(SquadVersion::kV2, prediction, answers);
}

std::string failure_of(const SquadOptions& options, const Questions& questions,
                       const Predictions& predictions,
                       const std::optional<Probabilities>& no_answer = {}) {
  return testing::failure(ExitCode::kBadData,
                          [&] {
                            if (no_answer) {
                              score_answers(options, questions, predictions, *no_answer);
                            } else {
                              score_answers(options, questions, predictions);
                            }
                          })
      .what();
}

TEST(AnswerMatch, ComparesNormalisedAnswers) {
  EXPECT_EQ(match1("the Broncos!", {"Broncos"}).exact, 1);
  EXPECT_EQ(match1("the Broncos!", {"Broncos"}).f1, 1);
  EXPECT_EQ(match1("Bronco", {"Broncos"}).exact, 0);
}

TEST(AnswerMatch, IsTheF1OfBagsOfWords) {
  // 2 common words ("new" counts once) of 3 predicted and 4 given: 2 (2/3) (2/4) / (2/3 + 2/4).
  const auto match = match1("new new york", {"york city new state"});
  EXPECT_EQ(match.exact, 0);
  EXPECT_NEAR(match.f1, 4.0 / 7, 1e-12);
}

TEST(AnswerMatch, TakesTheBestAnswerForEachScoreOnItsOwn) {
  const auto match = match1("in 1999", {"1999", "about 1999", "in 1999 or 2000"});
  EXPECT_EQ(match.exact, 0);
  EXPECT_NEAR(match.f1, 2.0 / 3, 1e-12);  // p = 1/2, r = 1, and p = 1, r = 1/2: equal
}

TEST(AnswerMatch, OfNoWordsIsExactWithoutF1In11AndCompleteIn20) {
  EXPECT_EQ(match1("The", {"a"}).exact, 1);
  EXPECT_EQ(match1("The", {"a"}).f1, 0);
  // 2.0 leaves out answers without words, and then takes the empty one.
  EXPECT_EQ(match2("The", {"a"}).exact, 1);
  EXPECT_EQ(match2("The", {"a"}).f1, 1);
  EXPECT_EQ(match2("The", {"a", "b"}).exact, 0);
  EXPECT_EQ(match2("The", {"a", "b"}).f1, 0);
}

TEST(AnswerMatch, OfAQuestionWithoutAnswersWantsTheEmptyOneIn20) {
  EXPECT_EQ(match2("", {}).exact, 1);
  EXPECT_EQ(match2("", {}).f1, 1);
  EXPECT_EQ(match2("something", {}).exact, 0);
  EXPECT_EQ(match2("something", {}).f1, 0);
  EXPECT_EQ(match2("", {"something"}).f1, 0);
}

TEST(Squad1, AveragesOverQuestionsInPercent) {
  const Questions questions{{"1", {"Paris"}}, {"2", {"the river Seine", "Seine"}}, {"3", {"x"}}};
  const auto score =
      score_answers(kSquad1, questions, Predictions{{"2", "river"}, {"1", "paris"}, {"3", "y"}});
  EXPECT_NEAR(score.all.exact_match, 100.0 / 3, 1e-12);
  EXPECT_NEAR(score.all.f1, 100 * (1 + 2.0 / 3) / 3, 1e-12);
  EXPECT_EQ(score.all.total, 3);
  EXPECT_FALSE(score.has_answer || score.no_answer || score.best_exact || score.best_f1);
}

TEST(Squad1, ScoresMissingPredictionsWithZeroAndNamesUnknownOnes) {
  const auto score = score_answers(kSquad1, Questions{{"1", {"x"}}, {"2", {"y"}}},
                                   Predictions{{"9", "x"}, {"1", "x"}, {"8", "y"}});
  EXPECT_EQ(score.all.exact_match, 50);
  EXPECT_EQ(score.all.f1, 50);
  EXPECT_EQ(score.missing, (Answers{"2"}));
  EXPECT_EQ(score.unknown, (Answers{"9", "8"}));
}

TEST(Squad1, RefusesNoQuestionsAndQuestionsWithoutAnswers) {
  EXPECT_NE(failure_of(kSquad1, {}, {}).find("no questions"), std::string::npos);
  EXPECT_NE(failure_of(kSquad1, {{"q7", {}}}, {}).find("question q7 has no answer"),
            std::string::npos);
  EXPECT_TRUE(failure_of({.version = SquadVersion::kV1, .where = "dev.json"}, {{"q7", {}}}, {})
                  .starts_with("dev.json: question q7 "));
}

const Questions& four_questions() {
  static const Questions questions{{"a1", {"red car"}}, {"n1", {}}, {"a2", {"blue"}}, {"n2", {}}};
  return questions;
}

TEST(Squad2, ScoresQuestionsWithAndWithoutAnswersApart) {
  const auto score =
      score_answers(kSquad2, four_questions(),
                    Predictions{{"a1", "car"}, {"n1", ""}, {"a2", ""}, {"n2", "green"}});
  // F1 of a1: p = 1, r = 1/2.
  EXPECT_EQ(score.all.exact_match, 25);
  EXPECT_NEAR(score.all.f1, 100 * (2.0 / 3 + 1) / 4, 1e-12);
  ASSERT_TRUE(score.has_answer && score.no_answer);
  EXPECT_EQ(score.has_answer->exact_match, 0);
  EXPECT_NEAR(score.has_answer->f1, 100.0 / 3, 1e-12);
  EXPECT_EQ(score.has_answer->total, 2);
  EXPECT_EQ(score.no_answer->exact_match, 50);
  EXPECT_EQ(score.no_answer->f1, 50);
  EXPECT_EQ(score.no_answer->total, 2);
  EXPECT_FALSE(score.best_exact || score.best_f1);
}

TEST(Squad2, OmitsAPartWithoutQuestions) {
  const auto score = score_answers(kSquad2, Questions{{"n", {}}}, Predictions{{"n", ""}});
  EXPECT_FALSE(score.has_answer);
  EXPECT_EQ(score.no_answer->total, 1);
}

TEST(Squad2, TakesPredictionsAboveTheThresholdForEmptyOnes) {
  const Predictions predictions{{"a1", "red car"}, {"n1", "x"}, {"a2", "blue"}, {"n2", "y"}};
  const Probabilities no_answer{{"a1", 0.1}, {"n1", 0.9}, {"a2", 0.8}, {"n2", 0.3}};
  const auto at = [&](double threshold) {
    const SquadOptions options{.version = SquadVersion::kV2, .no_answer_threshold = threshold};
    return score_answers(options, four_questions(), predictions, no_answer);
  };
  EXPECT_EQ(at(1).all.exact_match, 50);
  EXPECT_EQ(at(0.8).all.exact_match, 75);  // n1 becomes empty; 0.8 is not above 0.8
  EXPECT_EQ(at(0.5).all.exact_match, 50);  // and a2, which is lost
  EXPECT_EQ(at(0.5).has_answer->exact_match, 50);
  EXPECT_EQ(at(0.2).all.f1, 75);
  EXPECT_EQ(at(-1).all.f1, 50);
}

TEST(Squad2, FindsTheBestThresholdsOfUnalteredPredictions) {
  const Predictions predictions{{"a1", "car"}, {"n1", "x"}, {"a2", "blue"}, {"n2", ""}};
  const Probabilities no_answer{{"a1", 0.1}, {"n1", 0.9}, {"a2", 0.2}, {"n2", 0.3}};
  const SquadOptions options{.version = SquadVersion::kV2, .no_answer_threshold = 0};
  const auto score = score_answers(options, four_questions(), predictions, no_answer);
  // From 2 without any answer: exact +0 (a1), +1 (a2) = 3 at 0.2, +0 (n2), -1 (n1).
  EXPECT_EQ(score.best_exact->score, 75);
  EXPECT_EQ(score.best_exact->threshold, 0.2);
  EXPECT_NEAR(score.best_f1->score, 100 * (2 + 2.0 / 3 + 1) / 4, 1e-12);
  EXPECT_EQ(score.best_f1->threshold, 0.2);
}

TEST(Squad2, LeavesAllUnansweredAtThreshold0WhenNothingIsBetter) {
  const auto score =
      score_answers(kSquad2, Questions{{"n", {}}, {"a", {"x"}}},
                    Predictions{{"n", "y"}, {"a", "z"}}, Probabilities{{"n", 0.5}, {"a", 0.25}});
  EXPECT_EQ(score.best_exact->score, 50);
  EXPECT_EQ(score.best_exact->threshold, 0);
}

TEST(Squad2, TriesEqualProbabilitiesInTheOrderOfTheirFile) {
  // As the script does, between two equal ones too: answered first, a reaches 2 of 2 at 0.5.
  const Questions questions{{"n", {}}, {"a", {"x"}}};
  const Predictions predictions{{"n", "y"}, {"a", "x"}};
  const auto best = [&](const Probabilities& no_answer) {
    return score_answers(kSquad2, questions, predictions, no_answer).best_exact->score;
  };
  EXPECT_EQ(best({{"a", 0.5}, {"n", 0.5}}), 100);
  EXPECT_EQ(best({{"n", 0.5}, {"a", 0.5}}), 50);
}

TEST(Squad2, ScoresMissingPredictionsWithZeroWhereTheScriptFails) {
  const auto score = score_answers(kSquad2, four_questions(), Predictions{{"a1", "red car"}},
                                   Probabilities{{"a1", 0.5}, {"n1", 0.1}, {"elsewhere", 0.2}});
  EXPECT_EQ(score.all.exact_match, 25);
  EXPECT_EQ(score.no_answer->f1, 0);
  EXPECT_EQ(score.missing, (Answers{"n1", "a2", "n2"}));
  EXPECT_EQ(score.best_exact->score, 25);
  EXPECT_EQ(score.best_exact->threshold, 0.5);
}

TEST(Squad2, RefusesPredictionsWithoutAProbabilityWhenOthersHaveOne) {
  const std::string what =
      failure_of(kSquad2, four_questions(), {{"a1", "x"}, {"n1", ""}}, Probabilities{{"a1", 0.5}});
  EXPECT_NE(what.find("lack question n1"), std::string::npos) << what;
}

TEST(Squad, CountsCharactersWhereTold) {
  const Questions questions{{"1", {"東京都"}}};
  const Predictions predictions{{"1", "東京"}};
  EXPECT_EQ(score_answers(kSquad1, questions, predictions).all.f1, 0);
  const SquadOptions options{.split = AnswerSplit::kMlqaZh};
  EXPECT_NEAR(score_answers(options, questions, predictions).all.f1, 80, 1e-12);
}

TEST(Squad, WritesTheNamesOfTheScripts) {
  const auto json1 = nlohmann::ordered_json::parse(to_json(
      score_answers(kSquad1, Questions{{"1", {"x"}}}, Predictions{{"1", "x"}}), SquadVersion::kV1));
  EXPECT_EQ(
      json1.dump(),
      R"({"metric":"squad1","exact_match":100.0,"f1":100.0,"total":1,"missing":0,"unknown":0})");
  const auto json2 = nlohmann::json::parse(
      to_json(score_answers(kSquad2, four_questions(),
                            Predictions{{"a1", "red car"}, {"n1", ""}, {"a2", "?"}, {"x", ""}},
                            Probabilities{{"a1", 0.125}, {"n1", 0.5}, {"a2", 0.75}}),
              SquadVersion::kV2));
  EXPECT_EQ(json2, nlohmann::json::parse(R"({"metric": "squad2", "exact_match": 50.0, "exact": 50.0,
      "f1": 50.0, "total": 4, "HasAns_exact": 50.0, "HasAns_f1": 50.0, "HasAns_total": 2,
      "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2, "best_exact": 50.0,
      "best_exact_thresh": 0.125, "best_f1": 50.0, "best_f1_thresh": 0.125, "missing": 1,
      "unknown": 1})"));
}

}  // namespace
}  // namespace stretto::metrics
