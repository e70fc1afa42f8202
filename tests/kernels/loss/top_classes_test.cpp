#include "kernels/loss/top_classes.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/quantised/quantised.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kTopRows = 7, kTopWidth = 12, kTopClasses = 2500;  // of more than two blocks

struct TopProjection {
  at::Tensor x = noise({kTopRows, kTopWidth});
  at::Tensor weight = noise({kTopClasses, kTopWidth}, 8);
  at::Tensor bias = noise({kTopClasses}, 9);

  at::Tensor logits(double softcap = 0) const {
    return softcapped(linear(x, weight, bias), softcap);
  }
};

/// What is found is what a log-softmax of all logits has.
void expect_likeliest(const TopClasses& found, const at::Tensor& log_probs, int64_t count) {
  const auto [values, classes] = log_probs.topk(count, 1);
  ASSERT_EQ(found.count, count);
  for (int64_t row = 0; row < log_probs.size(0); ++row) {
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(found.classes_of(row)[at], classes[row][i].item<int64_t>()) << row << " " << i;
      EXPECT_NEAR(found.log_probs_of(row)[at], values[row][i].item<float>(), 2e-6);
    }
  }
}

TEST(TopClasses, AreThoseOfTheLogSoftmaxOfAllLogits) {
  const TopProjection all;
  for (const double softcap : {0.0, 5.0}) {
    const at::Tensor log_probs = at::log_softmax(all.logits(softcap), 1);
    for (const int64_t count : {1, 3, 10}) {
      expect_likeliest(linear_top(all.x, all.weight, all.bias, softcap, {.count = count}),
                       log_probs, count);
    }
    at::Tensor logits = all.logits(softcap).clone();
    expect_likeliest(top_of_logits(logits, {.count = 10}), log_probs, 10);
  }
}

TEST(TopClasses, LogitsLessTheirSumAreLogProbabilities) {
  const TopProjection all;
  const at::Tensor sums = at::logsumexp(all.logits().to(at::kDouble), 1);
  const auto found = linear_top(all.x, all.weight, all.bias, 0, {.count = 1});
  for (int64_t row = 0; row < kTopRows; ++row) {
    EXPECT_NEAR(found.log_sums[static_cast<size_t>(row)], sums[row].item<double>(), 1e-5);
  }
}

TEST(TopClasses, OnesThatAreNotWantedLeaveTheirPlaceToTheNext) {
  const TopProjection all;
  at::Tensor log_probs = at::log_softmax(all.logits(), 1);
  const at::Tensor order = log_probs.argsort(1, /*descending=*/true);
  const std::vector<int64_t> never{order[0][0].item<int64_t>(), order[3][1].item<int64_t>()};
  TopQuery query{.count = 4, .never = never};
  query.never_of_rows.resize(kTopRows);
  query.never_of_rows[2] = {order[2][0].item<int64_t>(), order[2][2].item<int64_t>()};
  const auto found = linear_top(all.x, all.weight, all.bias, 0, query);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  for (const int64_t one : never) log_probs.select(1, one).fill_(kNone);
  for (const int64_t one : query.never_of_rows[2]) log_probs[2][one].fill_(kNone);
  expect_likeliest(found, log_probs, 4);
}

TEST(TopClasses, OnesThatAreAskedForHaveTheirProbabilityHoweverSmall) {
  const TopProjection all;
  const at::Tensor log_probs = at::log_softmax(all.logits(), 1);
  const TopQuery query{
      .count = 1, .never = {}, .never_of_rows = {}, .asked = {0, 1023, 1024, 2499, -1, 2048, 5}};
  const auto found = linear_top(all.x, all.weight, all.bias, 0, query);
  for (size_t row = 0; row < query.asked.size(); ++row) {
    if (query.asked[row] < 0) continue;
    EXPECT_NEAR(found.asked_log_probs[row],
                log_probs[static_cast<int64_t>(row)][query.asked[row]].item<float>(), 2e-6);
  }
  EXPECT_EQ(found.asked_log_probs[4], -std::numeric_limits<float>::infinity());
}

TEST(TopClasses, EqualOnesComeByTheirNumber) {
  at::Tensor logits = at::zeros({1, 1500});
  logits[0][3] = logits[0][1400] = 1;
  const auto found = top_of_logits(logits, {.count = 4});
  EXPECT_EQ(found.classes, (std::vector<int64_t>{3, 1400, 0, 1}));
}

TEST(TopClasses, WhereThereAreFewerTheRestIsMissing) {
  at::Tensor logits =
      at::tensor({1.0F, 0.0F, -std::numeric_limits<float>::infinity()}).view({1, 3});
  const auto found = top_of_logits(logits, {.count = 5});
  EXPECT_EQ(found.classes, (std::vector<int64_t>{0, 1, -1, -1, -1}));
  EXPECT_NEAR(found.log_probs[0], -std::log1p(std::exp(-1.0)), 1e-6);
}

TEST(TopClasses, ARowThatIsNoNumberSaysSoAndTheOthersStay) {
  TopProjection all;
  const auto whole = linear_top(all.x, all.weight, all.bias, 0, {.count = 2});
  all.x[3].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto found = linear_top(all.x, all.weight, all.bias, 0, {.count = 2});
  for (size_t row = 0; row < static_cast<size_t>(kTopRows); ++row) {
    EXPECT_EQ(std::isnan(found.log_sums[row]), row == 3);
    if (row != 3) {
      EXPECT_EQ(found.log_sums[row], whole.log_sums[row]) << row;
    }
  }
}

TEST(TopClasses, AmongSomeProbabilitiesAreTheirsAlone) {
  const TopProjection all;
  std::vector<int64_t> ids;
  for (int64_t id = 2; id < kTopClasses; id += 3) ids.push_back(id);
  const at::Tensor index = at::tensor(ids, at::kLong);
  const at::Tensor some = at::log_softmax(all.logits().index_select(1, index), 1);
  const ClassRows rows(ids, all.weight, all.bias);
  const TopQuery query{
      .count = 3, .never = {}, .never_of_rows = {}, .asked = {2, 5, 3, -1, 8, 11, 14}};
  const auto found = linear_top(all.x, rows, 0, query);
  const auto [values, places] = some.topk(3, 1);
  for (int64_t row = 0; row < kTopRows; ++row) {
    for (int64_t i = 0; i < 3; ++i) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(found.classes_of(row)[at],
                ids[static_cast<size_t>(places[row][i].item<int64_t>())]);
      EXPECT_NEAR(found.log_probs_of(row)[at], values[row][i].item<float>(), 2e-6);
    }
  }
  EXPECT_NEAR(found.asked_log_probs[0], some[0][0].item<float>(), 2e-6);
  EXPECT_NEAR(found.asked_log_probs[1], some[1][1].item<float>(), 2e-6);
  EXPECT_EQ(found.asked_log_probs[2], -std::numeric_limits<float>::infinity()) << "not among them";
}

/// A matrix of codes that stands for such weights.
at::Tensor codes_of_weights(const at::Tensor& weight, int bits) {
  const double highest = (1 << (bits - 1)) - 1;
  const at::Tensor scales = weight.abs().amax(1, /*keepdim=*/true) / highest;
  return stand_in(std::make_shared<const QuantisedMatrix>(QuantisedWeights{
      .bits = bits, .codes = (weight / scales).round().to(at::kChar), .scales = scales}));
}

TEST(TopClasses, OfCodesOfFewBitsTheyAreThoseOfTheirProduct) {
  const TopProjection all;
  std::vector<int64_t> ids;
  for (int64_t id = 1; id < kTopClasses; id += 7) ids.push_back(id);
  for (const int bits : {8, 4}) {
    const at::Tensor codes = codes_of_weights(all.weight, bits);
    const at::Tensor logits = linear(all.x, codes, all.bias);
    expect_likeliest(linear_top(all.x, codes, all.bias, 0, {.count = 6}),
                     at::log_softmax(logits, 1), 6);
    const at::Tensor some = logits.index_select(1, at::tensor(ids, at::kLong));
    const at::Tensor best = at::log_softmax(some, 1).amax(1);
    const auto found = linear_top(all.x, ClassRows(ids, codes, all.bias), 0, {.count = 1});
    for (int64_t row = 0; row < kTopRows; ++row) {
      EXPECT_NEAR(found.log_probs_of(row)[0], best[row].item<float>(), 2e-6) << bits << " bits";
    }
  }
}

TEST(TopClasses, ARowDependsNeitherOnOthersNorOnThreads) {
  const stretto::testing::OwnProducts own_products;
  const TopProjection all;
  const auto found = [&](int threads, const at::Tensor& x) {
    const stretto::testing::Threads scope(threads);
    return linear_top(x, all.weight, all.bias, 0, {.count = 5});
  };
  const auto one = found(1, all.x), three = found(3, all.x),
             alone = found(1, all.x.narrow(0, 4, 1));
  EXPECT_EQ(one.classes, three.classes);
  EXPECT_EQ(one.log_probs, three.log_probs);
  EXPECT_TRUE(std::ranges::equal(one.log_probs_of(4), alone.log_probs_of(0)));
}

}  // namespace
}  // namespace stretto::kernels
