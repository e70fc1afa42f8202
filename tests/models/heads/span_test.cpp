#include "models/heads/span.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "tests/kernels/gradcheck.h"

namespace stretto::models {
namespace {

/// Sequences of 4, 1 and 3 rows.
SpanRows rows_of_three(bool some_allowed) {
  SpanRows rows{.offsets = {.values = at::tensor({0, 4, 5, 8}, at::kInt), .max_length = 4}};
  if (some_allowed) {
    rows.allowed = at::tensor({1, 0, 1, 1, 1, 1, 0, 1}, at::kInt).to(at::kBool);
  }
  return rows;
}

at::Tensor scores() {
  return stretto::testing::noise({8, 2}).to(at::kDouble) * 3;
}

const std::vector<int64_t> kBegins{2, 0, 0}, kEnds{3, 0, 2};

at::Tensor losses_of(const at::Tensor& scores, const SpanRows& rows) {
  return span_losses(scores, rows, at::tensor(kBegins, at::kLong), at::tensor(kEnds, at::kLong));
}

at::Tensor log_softmax_of_each(const at::Tensor& scores, const SpanRows& rows) {
  const at::Tensor masked =
      rows.allowed.defined()
          ? scores.masked_fill(rows.allowed.logical_not().unsqueeze(1), -INFINITY)
          : scores;
  const auto* at = rows.offsets.values.const_data_ptr<int32_t>();
  std::vector<at::Tensor> parts;
  for (int64_t b = 0; b + 1 < rows.offsets.values.size(0); ++b)
    parts.push_back(masked.slice(0, at[b], at[b + 1]).log_softmax(0));
  return at::cat(parts);
}

TEST(SpanLosses, AreThoseOfASoftmaxOverTheAllowedRowsOfEachSequence) {
  for (const bool some : {false, true}) {
    const SpanRows rows = rows_of_three(some);
    const at::Tensor got = losses_of(scores(), rows), log_p = span_log_probs(scores(), rows);
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t from = rows.offsets.values[b].item<int>(),
                    to = rows.offsets.values[b + 1].item<int>();
      double loss = 0;
      for (const int64_t column : {0, 1}) {
        double sum = 0;
        for (int64_t n = from; n < to; ++n)
          if (!some || rows.allowed[n].item<bool>())
            sum += std::exp(scores()[n][column].item<double>());
        for (int64_t n = from; n < to; ++n) {
          const bool allowed = !some || rows.allowed[n].item<bool>();
          const double plain =
              allowed ? scores()[n][column].item<double>() - std::log(sum) : -INFINITY;
          if (allowed) {
            EXPECT_NEAR(log_p[n][column].item<double>(), plain, 1e-12);
          } else {
            EXPECT_EQ(log_p[n][column].item<double>(), -INFINITY);
          }
        }
        const auto place = static_cast<size_t>(b);
        const int64_t target = from + (column == 0 ? kBegins[place] : kEnds[place]);
        loss -= (scores()[target][column].item<double>() - std::log(sum)) / 2;
      }
      EXPECT_NEAR(got[b].item<double>(), loss, 1e-12);
    }
  }
}

TEST(SpanLosses, GradientsAreThoseOfFiniteDifferences) {
  for (const bool some : {false, true})
    stretto::testing::expect_gradients(
        [&](const auto& in) { return losses_of(in[0], rows_of_three(some)); }, {scores()});
}

TEST(SpanLogProbs, ValuesAndGradientsAreThoseOfALogSoftmaxOfEachSequence) {
  for (const bool some : {false, true}) {
    const SpanRows rows = rows_of_three(some);
    stretto::testing::expect_equal([&](const auto& in) { return span_log_probs(in[0], rows); },
                                   [&](const auto& in) { return log_softmax_of_each(in[0], rows); },
                                   {scores()},
                                   {.type = at::kDouble,
                                    .relative = 1e-12,
                                    .absolute = 1e-12,
                                    .absolute_of_gradients = 1e-12});
  }
}

TEST(SpanLogProbs, GradientsAreThoseOfFiniteDifferences) {
  stretto::testing::expect_gradients(
      [](const auto& in) { return span_log_probs(in[0], rows_of_three(false)); }, {scores()});
}

TEST(SpanLogProbs, AnEmptySequenceChangesNothing) {
  const SpanRows rows = rows_of_three(true);
  const SpanRows with_empty{
      .offsets = {.values = at::tensor({0, 0, 4, 5, 5, 8, 8}, at::kInt), .max_length = 4},
      .allowed = rows.allowed};
  const auto gradient_of = [](const SpanRows& of) {
    const at::Tensor x = scores().requires_grad_(true), log_p = span_log_probs(x, of);
    const at::Tensor slope = stretto::testing::noise({8, 2}, 5).to(at::kDouble);
    return torch::autograd::grad({log_p}, {x}, {slope})[0];
  };
  EXPECT_TRUE(at::equal(span_log_probs(scores(), with_empty), span_log_probs(scores(), rows)));
  EXPECT_TRUE(at::equal(gradient_of(with_empty), gradient_of(rows)));
}

TEST(SpanLosses, RowsThatAreNotAllowedHaveNoGradient) {
  const SpanRows rows = rows_of_three(true);
  const at::Tensor x = scores().requires_grad_(true);
  losses_of(x, rows).sum().backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  EXPECT_TRUE(x.grad().index({rows.allowed.logical_not()}).eq(0).all().item<bool>());
  EXPECT_TRUE(x.grad().slice(0, 5).index({rows.allowed.slice(0, 5)}).ne(0).all().item<bool>());
}

TEST(SpanLosses, LargeScoresStayFinite) {
  const at::Tensor large = scores().to(at::kFloat) * 1e4;
  EXPECT_TRUE(losses_of(large, rows_of_three(true)).isfinite().all().item<bool>());
}

TEST(SpanLosses, ASequenceAloneHasTheSameLoss) {
  const SpanRows rows = rows_of_three(true);
  const SpanRows alone{.offsets = {.values = at::tensor({0, 3}, at::kInt), .max_length = 3},
                       .allowed = rows.allowed.slice(0, 5)};
  const at::Tensor got = span_losses(scores().slice(0, 5), alone, at::tensor({0}, at::kLong),
                                     at::tensor({2}, at::kLong));
  EXPECT_EQ(got[0].item<double>(), losses_of(scores(), rows)[2].item<double>());
}

TEST(SpanLosses, AnAnswerWhereNoneIsAllowedHasAnInfiniteLoss) {
  const at::Tensor got =
      span_losses(scores(), rows_of_three(true), at::tensor({1, 0, 0}, at::kLong),
                  at::tensor({3, 0, 2}, at::kLong));
  EXPECT_EQ(got[0].item<double>(), INFINITY);
  EXPECT_TRUE(got[2].isfinite().item<bool>());
}

TEST(SpanLosses, PlacesOutsideTheirSequenceAreRefused) {
  for (const int64_t begin : {-1, 1}) {
    const at::Tensor begins = at::tensor(std::vector<int64_t>{0, begin, 0}, at::kLong);
    EXPECT_THROW(span_losses(scores(), rows_of_three(false), begins, at::tensor(kEnds, at::kLong)),
                 c10::Error);
  }
}

TEST(SpanHead, ScoresAreALinearMapInSinglePrecisionAtLeast) {
  BertOptions options;
  options.preset = "none";
  options.num_layers = 1;
  options.d_model = 6;
  options.num_heads = 2;
  const SpanHead head(options, nn::Init(3, at::kCPU).child("head"));
  const auto weights = head.named_parameters();
  const at::Tensor x = stretto::testing::noise({8, 6});
  EXPECT_TRUE(at::allclose(head.scores(x), x.matmul(weights["output.weight"].t()), 1e-5, 1e-6));
  EXPECT_EQ(head.scores(x).scalar_type(), at::kFloat);
  EXPECT_EQ(head.operations(), 24);
}

}  // namespace
}  // namespace stretto::models
