#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "kernels/kernels.h"
#include "kernels/quantised/quantised.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise, testing::OwnProducts;

std::shared_ptr<const QuantisedMatrix> matrix_of_words(int64_t rows, int64_t width) {
  return std::make_shared<const QuantisedMatrix>(QuantisedWeights{
      .bits = 8,
      .group = 0,
      .codes = (noise({rows, width}, 3) * 40).round().clamp(-127, 127).to(at::kChar),
      .scales = noise({rows, 1}, 4).abs() * 0.01 + 1e-3});
}

TEST(StandIn, HasTheShapeOfItsMatrixAndNoNumbers) {
  const auto matrix = matrix_of_words(70, 64);
  const at::Tensor weight = stand_in(matrix);
  EXPECT_EQ(weight.sizes(), (std::vector<int64_t>{70, 64}));
  EXPECT_EQ(weight.scalar_type(), at::kFloat);
  EXPECT_TRUE(weight.isnan().all().item<bool>());
  EXPECT_EQ(weight.storage().nbytes(), 70U * sizeof(float));
  EXPECT_FALSE(stood_for(noise({3, 4})));
  EXPECT_FALSE(stood_for(at::Tensor()));
  EXPECT_FALSE(stood_for(weight.contiguous()));  // a copy is NaN and nothing else
}

TEST(StandIn, IsKnownByItsRowsAndLivesWithThem) {
  at::Tensor part;
  {
    const at::Tensor weight = stand_in(matrix_of_words(70, 64));
    ASSERT_TRUE(stood_for(weight));
    EXPECT_EQ(stood_for(weight)->first, 0);
    EXPECT_EQ(stood_for(weight)->count, 70);
    part = weight.detach().narrow(0, 40, 20).narrow(0, 5, 10);
  }
  const auto rows = stood_for(part);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->first, 45);
  EXPECT_EQ(rows->count, 10);
  EXPECT_TRUE(at::equal(dense_weight(part), matrix_of_words(70, 64)->dense(45, 10)));
  EXPECT_THROW(stood_for(part.narrow(1, 0, 3)), c10::Error);
  EXPECT_THROW(stood_for(part.t()), c10::Error);
}

TEST(StandIn, IsMultipliedAsItsCodes) {
  const at::NoGradGuard no_grad;
  const auto matrix = matrix_of_words(70, 64);
  const at::Tensor weight = stand_in(matrix), x = noise({9, 64}), bias = noise({70}, 8);
  const at::Tensor want = quantised_linear(x, *matrix, bias);
  EXPECT_TRUE(at::equal(linear(x, weight, bias), want));
  EXPECT_TRUE(at::equal(linear(x, weight.narrow(0, 10, 30), bias.narrow(0, 10, 30)),
                        want.narrow(1, 10, 30)));
  // Where there is no product of codes, the numbers are taken.
  const at::Tensor wide = x.to(at::kDouble);
  EXPECT_TRUE(at::allclose(kernels::linear(wide, weight),
                           at::matmul(wide, matrix->dense().to(at::kDouble).t())));
}

TEST(StandIn, HasItsNumbersWhereAGradientIsWanted) {
  const auto matrix = matrix_of_words(70, 64);
  const at::Tensor weight = stand_in(matrix), x = noise({9, 64}).requires_grad_(true);
  const at::Tensor y = kernels::linear(x, weight);
  EXPECT_TRUE(at::allclose(y, at::matmul(x, matrix->dense().t()), 1e-4, 1e-5));
  y.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), matrix->dense().sum(0).expand({9, 64}), 1e-4, 1e-5));
}

TEST(StandIn, IsLookedUpAndLearnedFrom) {
  const at::NoGradGuard no_grad;
  const auto matrix = matrix_of_words(70, 64);
  const at::Tensor weight = stand_in(matrix), dense = matrix->dense();
  const at::Tensor ids = at::tensor({5, 69, 5, 0}, at::kLong), position = noise({4, 64}, 9);
  EXPECT_TRUE(at::allclose(embed(weight, ids, 8.0, position), embed(dense, ids, 8.0, position)));
  EXPECT_TRUE(at::equal(embed(weight, ids, 1.0, {}), embed(dense, ids, 1.0, {})));
  EXPECT_THROW(embed(weight, at::full({1}, 70, at::kLong), 1.0, {}), c10::Error);
  EXPECT_TRUE(at::equal(weight_rows(weight.narrow(0, 10, 20), at::full({1}, 3, at::kLong)),
                        dense.narrow(0, 13, 1)));

  const at::Tensor x = noise({6, 64}), targets = at::arange(6);
  const at::Tensor shift = noise({70}, 10);
  const at::Tensor logits = quantised_linear(x, *matrix, shift.narrow(0, 0, 68), 0, 68);
  const at::Tensor log_probs = at::log_softmax(logits, 1);
  const CrossEntropy loss = linear_cross_entropy(x, weight, targets, 0, 68, shift);
  EXPECT_NEAR(loss.nll_sum.item<double>(), -log_probs.diagonal().sum().item<double>(), 1e-4);
  EXPECT_EQ(loss.token_nll.size(0), 6);
  EXPECT_NEAR(linear_cross_entropy(x, weight, targets, 0.1, 68).loss_sum.item<double>(),
              linear_cross_entropy(x, dense, targets, 0.1, 68).loss_sum.item<double>(), 0.5);
}

TEST(StandIn, IsUnpackedOnceWhileWeightsAreLaidOut) {
  const OwnProducts own;
  const at::Tensor weight = stand_in(matrix_of_words(70, 64));
  EXPECT_FALSE(dense_weight(weight).is_same(dense_weight(weight)));
  PackedWeights kept;
  const PackedWeightsScope scope(kept);
  EXPECT_TRUE(dense_weight(weight).is_same(dense_weight(weight)));
  const at::Tensor usual = noise({3, 4});
  EXPECT_TRUE(dense_weight(usual).is_same(usual));
}

}  // namespace
}  // namespace stretto::kernels
