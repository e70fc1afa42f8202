#include "data/squad/answer_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace stretto::data {
namespace {

using Spans = std::vector<Span>;
using ScoresOfWindows = std::vector<WindowScores>;

/// Tokens a b c d e f, a byte each, with spaces between them.
const Spans kOffsets{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}};
const ParagraphTokens kParagraph{.text = "a b c d e f", .offsets = kOffsets};

std::vector<std::string> texts_of(const AnswerChoice& choice) {
  std::vector<std::string> texts;
  for (const auto& candidate : choice.candidates) texts.push_back(candidate.text);
  return texts;
}

TEST(AnswerChoice, IsTheSpanOfTheLargestSumOfStartAndEnd) {
  const ScoresOfWindows windows{{.tokens = {0, 4}, .start = {0, 5, 1, 0}, .end = {1, 0, 2, 4}}};
  const auto choice = choose_answer(windows, kParagraph, {.nbest = 3});
  EXPECT_EQ(choice.text, "b c d");  // 5 + 4
  // Then 5 + 2; then 5 + 0 of b alone, before 1 + 4 of c d.
  EXPECT_EQ(texts_of(choice), (std::vector<std::string>{"b c d", "b c", "b"}));
  EXPECT_EQ(choice.candidates[0].score, 9);
  EXPECT_EQ(choice.candidates[0].tokens, (Span{1, 4}));
  const double sum = 1 + std::exp(-2.0) + std::exp(-4.0);
  EXPECT_NEAR(choice.candidates[1].probability, std::exp(-2.0) / sum, 1e-12);
}

TEST(AnswerChoice, EndsNotBeforeItBeginsAndWithinTheLongestAnswer) {
  const ScoresOfWindows windows{{.tokens = {0, 4}, .start = {1, 0, 0, 9}, .end = {8, 0, 0, 1}}};
  EXPECT_EQ(choose_answer(windows, kParagraph, {}).text, "d");  // 9 + 1, not 9 + 8
  const ScoresOfWindows far{{.tokens = {0, 4}, .start = {9, 0, 0, 0}, .end = {0, 0, 1, 9}}};
  EXPECT_EQ(choose_answer(far, kParagraph, {.max_answer_tokens = 4}).text, "a b c d");
  EXPECT_EQ(choose_answer(far, kParagraph, {.max_answer_tokens = 3}).text, "a b c");
}

TEST(AnswerChoice, TakesEachStartFromTheWindowWithMaximumContext) {
  // Tokens 0 1 | 2 3 are best in the first and in the second window.
  const ScoresOfWindows windows{{.tokens = {0, 3}, .start = {0, 1, 9}, .end = {0, 1, 9}},
                                {.tokens = {1, 4}, .start = {7, 2, 0}, .end = {7, 2, 3}}};
  const auto choice = choose_answer(windows, kParagraph, {.nbest = 2});
  EXPECT_EQ(texts_of(choice), (std::vector<std::string>{"b c", "a b c"}));
  EXPECT_EQ(choice.candidates[0].score, 10);
}

TEST(AnswerChoice, HasDistinctTexts) {
  const Spans offsets{{0, 1}, {2, 3}, {4, 5}};
  const ParagraphTokens twice{.text = "x y x", .offsets = offsets};
  const ScoresOfWindows windows{{.tokens = {0, 3}, .start = {5, 0, 4}, .end = {5, 1, 4}}};
  const auto choice = choose_answer(windows, twice, {.nbest = 20, .max_answer_tokens = 1});
  EXPECT_EQ(texts_of(choice), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(choice.candidates[0].tokens, (Span{0, 1}));
}

TEST(AnswerChoice, TrimsWhiteSpaceAndLeavesOutSpansWithoutText) {
  const Spans offsets{{0, 2}, {2, 3}, {3, 3}};  // "a ", " ", nothing
  const ParagraphTokens spaces{.text = "a  ", .offsets = offsets};
  const ScoresOfWindows windows{{.tokens = {0, 3}, .start = {1, 9, 9}, .end = {0, 2, 9}}};
  const auto choice = choose_answer(windows, spaces, {});
  EXPECT_EQ(choice.text, "a");
  EXPECT_EQ(choice.candidates.size(), 1);
}

TEST(AnswerChoice, IsNoneAboveTheThreshold) {
  // The best span has 3; no answer has the smaller of 6 and 4.
  const ScoresOfWindows windows{{.tokens = {0, 2}, .start = {1, 0}, .end = {0, 2}, .none = 6},
                                {.tokens = {2, 4}, .start = {0, 0}, .end = {0, 0}, .none = 4}};
  const auto at = [&](double threshold) {
    return choose_answer(windows, kParagraph, {.may_have_none = true, .none_threshold = threshold});
  };
  EXPECT_EQ(at(0).text, "");
  EXPECT_EQ(at(0).none_score_difference, 1);
  EXPECT_EQ(at(1).text, "a b");  // not above it
  EXPECT_EQ(at(0.5).text, "");
  EXPECT_EQ(at(0).candidates[0].text, "");
  EXPECT_EQ(at(0).candidates[0].score, 4);
  EXPECT_EQ(at(0).candidates[1].text, "a b");
  EXPECT_EQ(choose_answer(windows, kParagraph, {}).text, "a b");  // 1.1 knows no such answer
}

TEST(AnswerChoice, KeepsNoneBehindTheBestOnes) {
  const ScoresOfWindows windows{{.tokens = {0, 2}, .start = {5, 4}, .end = {0, 0}, .none = -7}};
  const auto choice = choose_answer(windows, kParagraph, {.nbest = 2, .may_have_none = true});
  EXPECT_EQ(texts_of(choice), (std::vector<std::string>{"a", "a b", ""}));
  const ScoresOfWindows middle{{.tokens = {0, 2}, .start = {5, 4}, .end = {0, -3}, .none = 3}};
  EXPECT_EQ(texts_of(choose_answer(middle, kParagraph, {.nbest = 2, .may_have_none = true})),
            (std::vector<std::string>{"a", ""}));
}

TEST(AnswerChoice, WithoutASpanIsEmpty) {
  const ScoresOfWindows empty{{.tokens = {0, 0}, .start = {}, .end = {}, .none = 1}};
  const auto choice = choose_answer(empty, {}, {.may_have_none = true, .none_threshold = 100});
  EXPECT_EQ(choice.text, "");
  EXPECT_EQ(choice.none_score_difference, std::numeric_limits<double>::max());
  EXPECT_EQ(choice.candidates.size(), 1);
  EXPECT_EQ(choice.candidates[0].probability, 1);
  EXPECT_TRUE(choose_answer(ScoresOfWindows{}, {}, {}).candidates.empty());
}

TEST(AnswerChoice, LeavesOutScoresThatAreNotFinite) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const ScoresOfWindows windows{
      {.tokens = {0, 3}, .start = {nan, 1, infinity}, .end = {0, 1, 0}, .none = nan}};
  const auto choice = choose_answer(windows, kParagraph, {.may_have_none = true});
  EXPECT_EQ(texts_of(choice), (std::vector<std::string>{"b", "b c"}));
  EXPECT_EQ(choice.text, "b");
  EXPECT_EQ(choice.none_score_difference, std::numeric_limits<double>::lowest());
}

TEST(AnswerChoice, RefusesScoresThatDoNotGoWithTheTokens) {
  const auto refuses = [](const WindowScores& window, const AnswerChoiceOptions& options) {
    EXPECT_THROW(choose_answer(ScoresOfWindows{window}, kParagraph, options),
                 std::invalid_argument);
  };
  refuses({.tokens = {0, 2}, .start = {1}, .end = {1, 2}}, {});
  refuses({.tokens = {5, 7}, .start = {1, 2}, .end = {1, 2}}, {});
  refuses({.tokens = {0, 1}, .start = {1}, .end = {1}}, {.nbest = 0});
}

}  // namespace
}  // namespace stretto::data
