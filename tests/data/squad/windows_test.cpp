#include "data/squad/windows.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace stretto::data {
namespace {

using Spans = std::vector<Span>;

TEST(Windows, OfAParagraphThatFitsAreOne) {
  const auto windows = cut_windows(5, 100, {.max_tokens = 108, .stride = 10});
  EXPECT_EQ(windows.question_tokens, 5);
  EXPECT_EQ(windows.spans, (Spans{{0, 100}}));
}

TEST(Windows, BeginAStrideApartUntilOneReachesTheEnd) {
  // Room for 12 - 3 - 4 = 5 tokens.
  const WindowOptions options{.max_tokens = 12, .stride = 3};
  EXPECT_EQ(cut_windows(4, 12, options).spans, (Spans{{0, 5}, {3, 8}, {6, 11}, {9, 12}}));
  EXPECT_EQ(cut_windows(4, 11, options).spans, (Spans{{0, 5}, {3, 8}, {6, 11}}));
  EXPECT_EQ(cut_windows(4, 6, options).spans, (Spans{{0, 5}, {3, 6}}));
}

TEST(Windows, LeaveNoTokenOutWithALargeStride) {
  EXPECT_EQ(cut_windows(4, 12, {.max_tokens = 12, .stride = 100}).spans,
            (Spans{{0, 5}, {5, 10}, {10, 12}}));
}

TEST(Windows, CutLongQuestions) {
  const auto windows =
      cut_windows(50, 10, {.max_tokens = 20, .stride = 4, .max_question_tokens = 9});
  EXPECT_EQ(windows.question_tokens, 9);
  EXPECT_EQ(windows.spans, (Spans{{0, 8}, {4, 10}}));
}

TEST(Windows, OfNoTokensAreOne) {
  EXPECT_EQ(cut_windows(3, 0, {}).spans, (Spans{{0, 0}}));
  EXPECT_TRUE(max_context_windows(Spans{{0, 0}}).empty());
}

TEST(Windows, NeedRoomAndAStride) {
  EXPECT_THROW(cut_windows(9, 10, {.max_tokens = 12}), std::invalid_argument);
  EXPECT_EQ(cut_windows(8, 2, {.max_tokens = 12, .stride = 1}).spans, (Spans{{0, 1}, {1, 2}}));
  EXPECT_THROW(cut_windows(8, 2, {.max_tokens = 12, .stride = 0}), std::invalid_argument);
}

TEST(MaxContext, IsWhereTheSmallerSideIsLargest) {
  // Token 7 has 4 tokens before and 0 behind it in the second window, 1 and 3 in the third.
  EXPECT_EQ(max_context_windows(Spans{{0, 5}, {3, 8}, {6, 11}, {9, 12}}),
            (std::vector<size_t>{0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3}));
}

TEST(MaxContext, OfEqualSidesIsInTheLargerThenInTheFirstWindow) {
  EXPECT_EQ(max_context_windows(Spans{{0, 2}, {1, 5}}), (std::vector<size_t>{0, 1, 1, 1, 1}));
  EXPECT_EQ(max_context_windows(Spans{{0, 2}, {1, 3}}), (std::vector<size_t>{0, 0, 1}));
}

TEST(AnswerTokens, AreThoseThatShareCharactersWithIt) {
  // "The Denver Bron|cos won": tokens The, Denver, Bron, cos, won.
  const Spans offsets{{0, 3}, {4, 10}, {11, 15}, {15, 18}, {19, 22}};
  EXPECT_EQ(tokens_of_answer(offsets, {4, 18}), (Span{1, 4}));
  EXPECT_EQ(tokens_of_answer(offsets, {12, 13}), (Span{2, 3}));  // within a token
  EXPECT_EQ(tokens_of_answer(offsets, {3, 11}), (Span{1, 2}));   // from space to space
  EXPECT_EQ(tokens_of_answer(offsets, {0, 22}), (Span{0, 5}));
  EXPECT_EQ(tokens_of_answer(offsets, {3, 4}), std::nullopt);    // a space
  EXPECT_EQ(tokens_of_answer(offsets, {22, 30}), std::nullopt);  // cut off
  EXPECT_EQ(tokens_of_answer(Spans{}, {0, 1}), std::nullopt);
}

TEST(AnswerInWindow, IsCountedFromItsFirstToken) {
  EXPECT_EQ(answer_in_window({3, 8}, {3, 5}), (Span{0, 2}));
  EXPECT_EQ(answer_in_window({3, 8}, {7, 8}), (Span{4, 5}));
  EXPECT_EQ(answer_in_window({3, 8}, {2, 5}), std::nullopt);
  EXPECT_EQ(answer_in_window({3, 8}, {7, 9}), std::nullopt);
}

}  // namespace
}  // namespace stretto::data
