#include "data/squad/question_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "data/text_columns.h"
#include "tests/base/failure.h"
#include "tests/data/squad/span_tokenizer.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

SquadData anna_in_oslo(std::vector<SquadAnswer> answers, bool is_impossible = false) {
  return {.paragraphs = {{.text = "Änna lives in Oslo.", .title = ""}},
          .questions = {{.id = "q",
                         .text = "Who lives in Oslo?",
                         .paragraph = 0,
                         .answers = std::move(answers),
                         .is_impossible = is_impossible}}};
}

QuestionWindows windows_of(SquadData data, const WindowOptions& options = {}) {
  return {std::move(data), *testing::small_tokenizer(), options};
}

Ids rows(const PackedTokens& column, int64_t sequence) {
  const auto values = column.sequence(sequence);
  return {values.begin(), values.end()};
}

TEST(QuestionWindows, AreQuestionAndParagraphBetweenSpecialTokens) {
  const auto windows = windows_of(anna_in_oslo({{.text = "Oslo", .begin = 14}}));
  ASSERT_EQ(windows.num_windows(), 1);
  Batch batch = empty_window_batch();
  windows.append(0, batch);
  EXPECT_EQ(batch.sample_ids, (Ids{0}));
  EXPECT_EQ(rows(tokens(batch), 0), (Ids{2, 5, 6, 7, 8, 11, 3, 9, 6, 7, 8, 10, 3}));
  EXPECT_EQ(rows(segments(batch), 0), (Ids{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
  const auto allowed = batch.column<uint8_t>(kAllowedRows).sequence(0);
  EXPECT_EQ((Ids{allowed.begin(), allowed.end()}), (Ids{1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(rows(batch.column<int64_t>(kAnswerRows), 0), (Ids{10, 10}));
  EXPECT_EQ(windows.num_rows(0), 13);
  EXPECT_EQ(windows.none_row(0), 0);
  EXPECT_EQ(windows.first_row(0), 7);
}

// What batches of all windows would tell.
TEST(QuestionWindows, CountTheirTokensWithoutBeingMade) {
  SquadData data = anna_in_oslo({{.text = "Oslo", .begin = 14}});
  data.paragraphs.push_back({.text = "% lives % in Oslo.", .title = ""});
  data.questions.push_back({.id = "r", .text = "Who in %?", .paragraph = 1});
  data.questions.push_back({.id = "s", .text = "Who?", .paragraph = 0});
  const auto windows = windows_of(data, {.max_tokens = 9, .stride = 1, .max_question_tokens = 4});
  Batch batch = empty_window_batch();
  for (int64_t i = 0; i < windows.num_windows(); ++i) windows.append(i, batch);
  ASSERT_GT(windows.num_windows(), 3);
  const auto& ids = tokens(batch).values;
  EXPECT_EQ(windows.num_rows(), std::ssize(ids));
  for (int64_t id = -1; id < 12; ++id) {
    EXPECT_EQ(windows.count_rows(id), std::count(ids.begin(), ids.end(), id)) << id;
  }
}

TEST(QuestionWindows, HaveAHashOfAllThatTheyAreMadeOf) {
  const auto hash = [](SquadData data, const WindowOptions& options = {}) {
    return windows_of(std::move(data), options).hash();
  };
  const SquadData data = anna_in_oslo({{.text = "Oslo", .begin = 14}});
  const uint64_t same = hash(data);
  EXPECT_EQ(hash(data), same);
  EXPECT_NE(hash(data, {.max_tokens = 10, .stride = 2, .max_question_tokens = 5}), same);
  EXPECT_NE(hash(anna_in_oslo({{.text = "in", .begin = 11}})), same) << "the answer";
  EXPECT_NE(hash(anna_in_oslo({}, true)), same) << "that there is none";
  SquadData other = data;
  other.questions[0].text = "Who lives in Anna?";
  EXPECT_NE(hash(other), same) << "the question";
  other = data;
  other.paragraphs[0].text = "Änna lives % Oslo.";
  EXPECT_NE(hash(other), same) << "the paragraph";
}

// "Ä" is one code point and two bytes.
TEST(QuestionWindows, FindAnswersByCodePoints) {
  const auto windows = windows_of(anna_in_oslo({{.text = "in Oslo", .begin = 11}}));
  EXPECT_EQ(windows.window(0).label, WindowLabel::kAnswer);
  EXPECT_EQ(windows.window(0).answer, (Span{2, 4}));
}

TEST(QuestionWindows, TeachTheFirstOfSeveralAnswers) {
  const auto windows =
      windows_of(anna_in_oslo({{.text = "Änna", .begin = 0}, {.text = "Oslo", .begin = 14}}));
  EXPECT_EQ(windows.window(0).answer, (Span{0, 1}));
}

TEST(QuestionWindows, OfAnImpossibleQuestionTeachThatThereIsNoAnswer) {
  const auto windows = windows_of(anna_in_oslo({}, true));
  EXPECT_EQ(windows.window(0).label, WindowLabel::kNone);
  Batch batch = empty_window_batch();
  windows.append(0, batch);
  EXPECT_EQ(rows(batch.column<int64_t>(kAnswerRows), 0), (Ids{0, 0}));
}

TEST(QuestionWindows, TeachNothingWhereNobodySaidTheAnswer) {
  const auto windows = std::make_shared<QuestionWindows>(windows_of(anna_in_oslo({})));
  EXPECT_EQ(windows->window(0).label, WindowLabel::kUnknown);
  EXPECT_EQ(WindowSamples(windows).size(), 0);
}

// The space between two words belongs to no token.
TEST(QuestionWindows, CountAnswersThatNoTokenHas) {
  const auto windows = windows_of(anna_in_oslo({{.text = " ", .begin = 4}}));
  EXPECT_EQ(windows.num_unreachable(), 1);
  EXPECT_EQ(windows.window(0).label, WindowLabel::kUnknown);
}

// Three tokens of the question and three special ones leave two of eight for the paragraph.
TEST(QuestionWindows, CutQuestionsAndLongParagraphs) {
  const auto windows = windows_of(anna_in_oslo({{.text = "Oslo", .begin = 14}}),
                                  {.max_tokens = 8, .stride = 1, .max_question_tokens = 3});
  EXPECT_EQ(windows.num_cut_questions(), 1);
  EXPECT_EQ(windows.num_cut_tokens(), 2) << "of \"Who lives in Oslo?\"";
  ASSERT_EQ(windows.num_windows(), 4);
  EXPECT_EQ(windows.windows_of(0), (Span{0, 4}));
  std::vector<WindowLabel> labels;
  for (int64_t i = 0; i < 4; ++i) labels.push_back(windows.window(i).label);
  EXPECT_EQ(labels, (std::vector<WindowLabel>{WindowLabel::kNone, WindowLabel::kNone,
                                              WindowLabel::kAnswer, WindowLabel::kAnswer}));
  Batch batch = empty_window_batch();
  windows.append(2, batch);
  windows.append(3, batch);
  EXPECT_EQ(rows(tokens(batch), 0), (Ids{2, 5, 6, 7, 3, 7, 8, 3}));
  EXPECT_EQ(rows(batch.column<int64_t>(kAnswerRows), 0), (Ids{6, 6}));
  EXPECT_EQ(rows(tokens(batch), 1), (Ids{2, 5, 6, 7, 3, 8, 10, 3}));
  EXPECT_EQ(rows(batch.column<int64_t>(kAnswerRows), 1), (Ids{5, 5}));
}

TEST(QuestionWindows, CountTheTokensThatAllQuestionsLost) {
  auto data = anna_in_oslo({});
  data.questions.push_back(
      {.id = "short", .text = "Who?", .paragraph = 0, .answers = {{"Änna", 0}}});
  data.questions.push_back(
      {.id = "long", .text = "Who lives in Oslo in Oslo?", .paragraph = 0, .answers = {}});
  EXPECT_EQ(windows_of(data).num_cut_tokens(), 0);
  const auto windows = windows_of(data, {.max_question_tokens = 4});
  EXPECT_EQ(windows.num_cut_questions(), 2);
  EXPECT_EQ(windows.num_cut_tokens(), 1 + 3);
}

TEST(QuestionWindows, AreSamplesInTheOrderOfTheirLengths) {
  auto data = anna_in_oslo({{.text = "Oslo", .begin = 14}});
  data.questions.push_back(
      {.id = "short", .text = "Who?", .paragraph = 0, .answers = {{"Änna", 0}}});
  const auto windows = std::make_shared<QuestionWindows>(windows_of(std::move(data)));
  const WindowSamples samples(windows);
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples.sample_at(0), 1);
  EXPECT_EQ(samples.sample_at(1), 0);
}

TEST(QuestionWindows, WithoutRoomForTheParagraphAreRefused) {
  const auto error = testing::failure(ExitCode::kUsage, [] {
    windows_of(anna_in_oslo({}), {.max_tokens = 10, .max_question_tokens = 7});
  });
  EXPECT_EQ(std::string(error.what()).rfind("data.max_text_tokens: ", 0), 0U) << error.what();
  EXPECT_NE(error.advice().find("data.max_question_tokens"), std::string::npos);
}

TEST(PairLayout, OfRobertaHasTwoSpecialTokensBetweenItsTexts) {
  using Part = text::SequenceTemplate::Part;
  const PairLayout layout({.single = {},
                           .pair = {{.part = Part::kSpecial, .id = 0},
                                    {.part = Part::kFirst},
                                    {.part = Part::kSpecial, .id = 2},
                                    {.part = Part::kSpecial, .id = 2},
                                    {.part = Part::kSecond},
                                    {.part = Part::kSpecial, .id = 2}}});
  EXPECT_EQ(layout.num_specials(), 4);
  EXPECT_EQ(layout.none_row(5), 0);
  EXPECT_EQ(layout.first_row(5), 8);
}

TEST(PairLayout, WithoutASpecialTokenIsRefused) {
  const auto error = testing::failure(ExitCode::kUsage, [] { PairLayout layout({}); });
  EXPECT_NE(std::string(error.what()).find("no special token"), std::string::npos);
}

}  // namespace
}  // namespace stretto::data
