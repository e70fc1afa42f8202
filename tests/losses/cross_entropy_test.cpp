#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "base/error.h"
#include "losses/registry.h"
#include "tests/base/failure.h"

namespace stretto::losses {
namespace {

/// One token whose logits give p = (1/2, 1/4, 1/4); a fourth row only rounds the table up.
kernels::CrossEntropy loss_of_target_one(double label_smoothing) {
  const at::Tensor x = torch::ones({1, 1}, torch::kDouble);
  const at::Tensor weight = torch::tensor({{std::log(2.0)}, {0.0}, {0.0}, {5.0}}, torch::kDouble);
  CrossEntropyOptions options;
  options.label_smoothing = label_smoothing;
  return make_loss(options)(x, weight, torch::tensor({1}, torch::kLong), 3, {}, 0);
}

TEST(CrossEntropyLoss, HasTheValueComputedByHand) {
  const double ln2 = std::log(2.0);
  // e = 0.1 / 2; (1 - 0.1 - 0.05) * 2 ln 2 + 0.05 * (1 + 2 + 2) ln 2 = 1.95 ln 2
  EXPECT_NEAR(loss_of_target_one(0.1).loss_sum.item<double>(), 1.95 * ln2, 1e-9);
  EXPECT_NEAR(loss_of_target_one(0.1).nll_sum.item<double>(), 2 * ln2, 1e-9);
}

TEST(CrossEntropyLoss, WithoutSmoothingIsTheNegativeLogLikelihood) {
  const auto sums = loss_of_target_one(0.0);
  EXPECT_NEAR(sums.loss_sum.item<double>(), sums.nll_sum.item<double>(), 1e-12);
}

TEST(CrossEntropyLoss, OfDistributionsIsTheSameLoss) {
  CrossEntropyOptions options;
  options.label_smoothing = 0.1;
  const at::Tensor log_probs = torch::log(torch::tensor({{0.5, 0.25, 0.25}, {0.25, 0.25, 0.5}}));
  const auto sums = make_distribution_loss(options)(log_probs, torch::tensor({1, 2}, torch::kLong));
  const double ln2 = std::log(2.0);
  // The row above, and (1 - 0.1 - 0.05) ln 2 + 0.05 * (2 + 2 + 1) ln 2 = 1.1 ln 2
  EXPECT_NEAR(sums.loss_sum.item<double>(), (1.95 + 1.1) * ln2, 1e-6);
  EXPECT_NEAR(sums.nll_sum.item<double>(), 3 * ln2, 1e-6);
}

// p = (1/2, 1/4, 1/4) and q = (1/4, 1/4, 1/2): KL is 1/4 ln 2 in both directions.
TEST(CrossEntropyLoss, OfPairsHasTheValueComputedByHand) {
  const double ln2 = std::log(2.0);
  const at::Tensor x = torch::eye(2, torch::kDouble);
  const at::Tensor weight =
      torch::tensor({{ln2, 0.0}, {0.0, 0.0}, {0.0, ln2}, {5.0, 5.0}}, torch::kDouble);
  const auto sums = make_pair_loss({.label_smoothing = 0.1, .r_drop = 4})(
      x, weight, torch::tensor({1}, torch::kLong), 3, {}, 0);
  EXPECT_NEAR(sums.kl_sum.item<double>(), 0.25 * ln2, 1e-12);
  EXPECT_NEAR(sums.nll_sum.item<double>(), 2 * ln2, 1e-12);
  EXPECT_NEAR(sums.loss_sum.item<double>(), 1.95 * ln2 + 4.0 / 2 * 0.25 * ln2, 1e-12);
}

// The same p and q, of logits that a bias is part of.
TEST(CrossEntropyLoss, OfPairsAddsTheBiasToTheLogits) {
  const double ln2 = std::log(2.0);
  const at::Tensor x = torch::eye(2, torch::kDouble);
  const at::Tensor logits =
      torch::tensor({{ln2, 0.0}, {0.0, 0.0}, {0.0, ln2}, {5.0, 5.0}}, torch::kDouble);
  const at::Tensor bias = torch::tensor({1.0, -2.0, 0.5, 7.0}, torch::kDouble);
  const auto sums = make_pair_loss({.label_smoothing = 0.1, .r_drop = 4})(
      x, logits - bias.unsqueeze(1), torch::tensor({1}, torch::kLong), 3, bias, 0);
  EXPECT_NEAR(sums.kl_sum.item<double>(), 0.25 * ln2, 1e-12);
  EXPECT_NEAR(sums.nll_sum.item<double>(), 2 * ln2, 1e-12);
  EXPECT_NEAR(sums.loss_sum.item<double>(), 1.95 * ln2 + 4.0 / 2 * 0.25 * ln2, 1e-12);
}

TEST(CrossEntropyLoss, OfPairsIsThereWithRDropAlone) {
  EXPECT_FALSE(make_pair_loss({}));
  EXPECT_TRUE(make_pair_loss({.r_drop = 1}));
}

TEST(LossRegistry, NamesWhatItKnows) {
  CrossEntropyOptions options;
  options.name = "hinge";
  const Error error = testing::failure(ExitCode::kUsage, [&] { make_loss(options); });
  EXPECT_NE(error.message().find("hinge"), std::string::npos);
  EXPECT_NE(error.advice().find("cross_entropy"), std::string::npos);
}

}  // namespace
}  // namespace stretto::losses
