#include "families/question_answering/engine/answer_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "data/squad/code_points.h"
#include "families/question_answering/engine/span_pass.h"
#include "tests/distributed/thread_group.h"
#include "tests/families/question_answering/engine/small_questions.h"

namespace stretto::tasks {
namespace {

FoundAnswers found_with(const AnswerFinding& finding) {
  return find_answers({testing::span_model()}, *testing::small_windows(), finding);
}

void expect_equal(const FoundAnswers& a, const FoundAnswers& b) {
  ASSERT_EQ(a.choices.size(), b.choices.size());
  for (size_t i = 0; i < a.choices.size(); ++i) {
    EXPECT_EQ(a.choices[i].text, b.choices[i].text) << i;
    ASSERT_EQ(a.choices[i].candidates.size(), b.choices[i].candidates.size()) << i;
    for (size_t k = 0; k < a.choices[i].candidates.size(); ++k) {
      EXPECT_EQ(a.choices[i].candidates[k].tokens, b.choices[i].candidates[k].tokens) << i;
      EXPECT_NEAR(a.choices[i].candidates[k].score, b.choices[i].candidates[k].score, 1e-3) << i;
    }
  }
  EXPECT_NEAR(a.loss(), b.loss(), 1e-4);
  EXPECT_EQ(a.num_labelled, b.num_labelled);
}

TEST(AnswerFinder, FindsTheSameInBatchesOfAnySize) {
  const auto whole = found_with({.choice = {.nbest = 3, .may_have_none = true}});
  EXPECT_EQ(whole.num_labelled, testing::small_windows()->num_windows());
  for (const int64_t tokens : {1, 40, 70}) {
    expect_equal(found_with({.choice = {.nbest = 3, .may_have_none = true}, .max_tokens = tokens}),
                 whole);
  }
  expect_equal(found_with({.choice = {.nbest = 3, .may_have_none = true}, .max_samples = 1}),
               whole);
}

TEST(AnswerFinder, GivesEveryProcessAllAnswersToTheBit) {
  const AnswerFinding alone{.choice = {.nbest = 3, .may_have_none = true}, .max_tokens = 40};
  const auto expected = found_with(alone);
  std::mutex lock;
  int answered = 0;
  stretto::test::run_ranks(3, [&](const distributed::ProcessGroup& group) {
    AnswerFinding shared = alone;
    shared.group = group;
    const auto found = found_with(shared);
    const std::scoped_lock guard(lock);
    expect_equal(found, expected);
    EXPECT_EQ(found.loss_sum, expected.loss_sum);
    ++answered;
  });
  EXPECT_EQ(answered, 3);
}

TEST(AnswerFinder, AnswersAreTextsOfTheirParagraphs) {
  const auto windows = testing::small_windows();
  const auto found = find_answers({testing::span_model()}, *windows, {});
  for (size_t i = 0; i < found.choices.size(); ++i) {
    ASSERT_FALSE(found.choices[i].candidates.empty());
    const auto& best = found.choices[i].candidates.front();
    const auto place = characters_of(*windows, i, best);
    const data::CodePoints characters(windows->paragraph_of(i).text);
    EXPECT_EQ(characters.slice(place.begin, place.end), best.text);
    EXPECT_EQ(best.text, found.choices[i].text);
  }
}

TEST(AnswerFinder, NamesAQuestionWhoseScoresAreNotFinite) {
  EXPECT_EQ(found_with({}).overflowed, -1);
  const auto model = testing::span_model();
  const torch::NoGradGuard no_grad;
  model->named_parameters()["head.output.weight"].fill_(3e38F);
  const auto windows = testing::small_windows();
  EXPECT_EQ(find_answers({model}, *windows, {}).overflowed, 0);
}

std::vector<int64_t> ids_of(const data::QuestionWindows& windows, size_t question) {
  data::Batch batch = data::empty_window_batch();
  const auto own = windows.windows_of(question);
  for (int64_t i = own.begin; i < own.end; ++i) windows.append(i, batch);
  return data::tokens(batch).values;
}

// A token of its windows that the questions before have not.
TEST(AnswerFinder, DoesNotNameAQuestionThatIsReadWithIt) {
  const auto windows = testing::small_windows();
  std::vector<int64_t> seen = ids_of(*windows, 0);
  size_t question = 0;
  int64_t own_id = -1;
  while (own_id < 0 && ++question < windows->num_questions()) {
    for (const int64_t id : ids_of(*windows, question)) {
      if (std::ranges::find(seen, id) == seen.end()) own_id = id;
      seen.push_back(id);
    }
  }
  ASSERT_GE(own_id, 0) << "the test is stale: all questions have the same tokens";
  const auto model = testing::span_model();
  const torch::NoGradGuard no_grad;
  model->named_parameters()["encoder.embedding.weight"][own_id].fill_(INFINITY);
  for (const int64_t max_tokens : {1, 60, 10000}) {
    EXPECT_EQ(find_answers({model}, *windows, {.max_tokens = max_tokens}).overflowed,
              static_cast<int64_t>(question));
  }
}

TEST(AnswerFinder, KeepsAsManyCandidatesAsItIsAskedFor) {
  const auto found = found_with({.choice = {.nbest = 5}, .num_candidates = 2});
  for (const auto& choice : found.choices) EXPECT_LE(choice.candidates.size(), 2u);
}

TEST(AnswerFinder, CountsTheLossOfWindowsWithALabelAlone) {
  auto data = testing::small_questions();
  data.questions.front().answers.clear();
  data.questions.front().is_impossible = false;
  const data::QuestionWindows windows(data, *testing::small_tokenizer(), {});
  const auto model = testing::span_model();
  double sum = 0;
  for (int64_t i = windows.windows_of(0).end; i < windows.num_windows(); ++i) {
    data::Batch window = data::empty_window_batch();
    windows.append(i, window);
    const at::NoGradGuard no_grad;
    const auto batch = prepare_windows(window, *model);
    sum += losses_of(span_pass(*model, batch, {}), span_targets(batch)).item<double>();
  }
  const auto found = find_answers({model}, windows, {});
  EXPECT_EQ(found.num_labelled, windows.num_windows() - windows.windows_of(0).size());
  EXPECT_NEAR(found.loss_sum, sum, 1e-4 * sum + 1e-4);
}

TEST(AnswerFinder, CountsNoLossWhereNobodySaidTheAnswer) {
  auto data = testing::small_questions();
  for (auto& question : data.questions) {
    question.answers.clear();
    question.is_impossible = false;
  }
  const data::QuestionWindows windows(data, *testing::small_tokenizer(), {});
  const auto found = find_answers({testing::span_model()}, windows, {});
  EXPECT_EQ(found.num_labelled, 0);
  EXPECT_EQ(found.loss(), 0);
}

}  // namespace
}  // namespace stretto::tasks
