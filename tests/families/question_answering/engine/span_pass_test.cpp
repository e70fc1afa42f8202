#include "families/question_answering/engine/span_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "families/text/engine/encoder_task.h"
#include "tests/families/question_answering/engine/small_questions.h"

namespace stretto::tasks {
namespace {

data::Batch batch_of(const data::QuestionWindows& windows, std::vector<int64_t> numbers) {
  data::Batch batch = data::empty_window_batch();
  for (const int64_t number : numbers) windows.append(number, batch);
  return batch;
}

SpanTargets targets_of(const data::Batch& batch) {
  return span_targets(prepare_windows(batch, *testing::span_model()));
}

// -log softmax over the allowed rows, begin and end halved, by hand.
TEST(SpanPass, LossIsTheMeanOfBothCrossEntropiesOverAllowedRows) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  for (int64_t number = 0; number < windows->num_windows(); ++number) {
    const auto batch = batch_of(*windows, {number});
    const auto pass = span_pass(*model, prepare_windows(batch, *model), {});
    const auto allowed = batch.column<uint8_t>(data::kAllowedRows).sequence(0);
    const auto answer = batch.column<int64_t>(data::kAnswerRows).sequence(0);
    double expected = 0;
    for (int64_t column = 0; column < 2; ++column) {
      double sum = 0;
      for (size_t row = 0; row < allowed.size(); ++row) {
        if (allowed[row] == 0) continue;
        sum += std::exp(pass.scores[static_cast<int64_t>(row)][column].item<double>());
      }
      expected +=
          std::log(sum) - pass.scores[answer[static_cast<size_t>(column)]][column].item<double>();
    }
    EXPECT_NEAR(losses_of(pass, targets_of(batch)).item<double>(), expected / 2,
                1e-4 * std::abs(expected) + 1e-5);
  }
}

// What the last layer leaves out has no part in losses or gradients.
TEST(SpanPass, OfAllowedRowsAloneIsThatOfAllRows) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  const auto batch = batch_of(*windows, {0, 1, 2});
  const auto gradients_of = [&](const SpanPass& pass) {
    model->zero_grad();
    losses_of(pass, targets_of(batch)).sum().backward();
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : model->parameters()) {
      gradients.push_back(parameter.grad().clone());
    }
    return gradients;
  };
  const auto pass = span_pass(*model, prepare_windows(batch, *model), {});
  SpanPass of_all = pass;
  of_all.scores = model->spans().scores(model->encode(prepare_texts(batch, *model).rows(), {}));
  const auto allowed = pass.rows.allowed;
  ASSERT_LT(allowed.sum().item<int64_t>(), allowed.size(0));
  EXPECT_TRUE(at::allclose(pass.scores.index({allowed}), of_all.scores.index({allowed})));
  EXPECT_EQ(pass.scores.index({allowed.logical_not()}).abs().max().item<float>(), 0);
  const auto own = gradients_of(pass), all = gradients_of(of_all);
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_TRUE(at::allclose(own[i], all[i], 1e-4, 1e-6)) << model->named_parameters()[i].key();
  }
}

TEST(SpanPass, OfABatchIsThatOfItsSequences) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  const auto losses = [&](std::vector<int64_t> numbers) {
    const auto batch = batch_of(*windows, std::move(numbers));
    return losses_of(span_pass(*model, prepare_windows(batch, *model), {}), targets_of(batch));
  };
  const auto together = losses({0, 1, 2});
  for (int64_t number = 0; number < 3; ++number) {
    EXPECT_NEAR(together[number].item<double>(), losses({number}).item<double>(), 1e-4);
  }
}

TEST(SpanPass, CountsSequencesWithBothEndsAtTheAnswer) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  const auto batch = batch_of(*windows, {0, 1});
  SpanPass pass = span_pass(*model, prepare_windows(batch, *model), {});
  const SpanTargets targets = targets_of(batch);
  const auto first_rows = pass.rows.offsets.values.to(at::kLong);
  pass.scores = at::zeros_like(pass.scores);
  const auto raise = [&](int64_t sequence, int64_t column, const at::Tensor& places, double by) {
    const int64_t row = first_rows[sequence].item<int64_t>() + places[sequence].item<int64_t>();
    pass.scores[row][column] += by;
  };
  raise(0, 0, targets.begins, 1);
  raise(0, 1, targets.ends, 1);
  raise(1, 0, targets.begins, 1);
  EXPECT_EQ(num_right(pass, targets).item<int64_t>(), 2)
      << "all ends of the second one are equally good";
  raise(1, 1, targets.ends, -1);
  EXPECT_EQ(num_right(pass, targets).item<int64_t>(), 1);
  // Rows of the question do not count, whatever their scores are.
  pass.scores[first_rows[0].item<int64_t>() + 1][0] = 9;
  EXPECT_EQ(num_right(pass, targets).item<int64_t>(), 1);
}

TEST(SpanPass, ReadsNoAnswers) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  auto batch = batch_of(*windows, {0, 1});
  const auto scores = span_pass(*model, prepare_windows(batch, *model), {}).scores;
  batch.columns.pop_back();
  ASSERT_THROW(targets_of(batch), std::out_of_range);
  EXPECT_TRUE(span_pass(*model, prepare_windows(batch, *model), {}).scores.equal(scores));
}

TEST(SpanPass, OfSeveralModelsHasTheMeanOfTheirScores) {
  const auto windows = testing::small_windows();
  auto a = testing::span_model(3), b = testing::span_model(4);
  const auto batch = batch_of(*windows, {0, 1});
  const auto mean = (span_pass(*a, prepare_windows(batch, *a), {}).scores +
                     span_pass(*b, prepare_windows(batch, *b), {}).scores) /
                    2;
  EXPECT_TRUE(at::allclose(span_pass({a, b}, prepare_windows(batch, *a)).scores, mean));
}

TEST(SpanPass, GivesTheScoresOfAWindowsTokensAndOfNoAnswer) {
  const auto windows = testing::small_windows();
  auto model = testing::span_model();
  const auto scores =
      span_pass(*model, prepare_windows(batch_of(*windows, {1}), *model), {}).scores;
  const auto found = window_scores(*windows, 1, scores.contiguous());
  ASSERT_EQ(static_cast<int64_t>(found.start.size()), windows->window(1).tokens.size());
  const int64_t first = windows->first_row(1);
  EXPECT_EQ(found.start[2], scores[first + 2][0].item<float>());
  EXPECT_EQ(found.end[2], scores[first + 2][1].item<float>());
  EXPECT_EQ(found.none, scores[0][0].item<float>() + scores[0][1].item<float>());
}

}  // namespace
}  // namespace stretto::tasks
