#include "models/heads/masked_token.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/kernels/gradcheck.h"

namespace stretto::models {
namespace {

constexpr int64_t kRowWidth = 6, kTableRows = 13, kNumTokens = 11, kMasked = 5;

BertOptions options_of(const std::string& activation = "gelu") {
  BertOptions options;
  options.preset = "none";
  options.num_layers = 1;
  options.d_model = kRowWidth;
  options.num_heads = 2;
  options.activation = activation;
  return options;
}

struct MaskedHead {
  nn::Embedding table{nullptr};  ///< null = the head has a matrix of its own
  std::shared_ptr<MaskedTokenHead> head;
};

at::Tensor first_bias() {
  return stretto::testing::noise({kTableRows}, 5).to(at::kDouble);
}

MaskedHead head_of(const BertOptions& options, bool tied, double label_smoothing = 0) {
  const nn::Init init(3, at::kCPU);
  MaskedHead made;
  if (tied) made.table = nn::Embedding(init.child("embedding"), kTableRows, kRowWidth, /*pad=*/0);
  made.head = std::make_shared<MaskedTokenHead>(
      options, MaskedTokenHeadSetup{.init = init.child("head"),
                                    .rows = kTableRows,
                                    .num_classes = kNumTokens,
                                    .tied = made.table,
                                    .label_smoothing = label_smoothing});
  if (made.table) made.table->to(at::kDouble);
  made.head->to(at::kDouble);
  const torch::NoGradGuard no_grad;
  made.head->bias.copy_(first_bias());
  return made;
}

at::Tensor masked_rows() {
  return stretto::testing::noise({kMasked, kRowWidth}).to(at::kDouble);
}
at::Tensor hidden_tokens() {
  return at::tensor({3, 0, 10, 10, 1}, at::kLong);
}

at::Tensor plain_masked_log_probs(const MaskedHead& made, const at::Tensor& x,
                                  const std::string& activation) {
  const auto weights = made.head->named_parameters();
  at::Tensor h = x.matmul(weights["dense.weight"].t()) + weights["dense.bias"];
  if (activation == "relu") {
    h = h.clamp_min(0);
  } else if (activation == "gelu_tanh") {
    h = h * 0.5 * (1 + at::tanh(std::sqrt(2 / M_PI) * (h + 0.044715 * h.pow(3))));
  } else {
    h = h * 0.5 * (1 + at::erf(h / std::sqrt(2.0)));
  }
  h = h - h.mean(1, true);
  h = h / (h.square().mean(1, true) + 1e-12).sqrt() * weights["norm.weight"] + weights["norm.bias"];
  const at::Tensor logits =
      (h.matmul(made.head->matrix().t()) + weights["bias"]).slice(1, 0, kNumTokens);
  return logits - logits.exp().sum(1, true).log();
}

std::vector<at::Tensor> parameters_of(const MaskedHead& made) {
  std::vector<at::Tensor> all = made.head->parameters();
  if (made.table) all.push_back(made.table->weight);
  return all;
}

TEST(MaskedTokenHead, LossAndGradientsAreThoseOfThePlainFormula) {
  for (const bool tied : {true, false}) {
    for (const double smoothing : {0.0, 0.2}) {
      const MaskedHead made = head_of(options_of(), tied, smoothing);
      const at::Tensor x = masked_rows().requires_grad_(true);
      const auto parameters = [&] {
        auto all = parameters_of(made);
        all.push_back(x);
        return all;
      }();
      const at::Tensor log_p = plain_masked_log_probs(made, x, "gelu");
      const at::Tensor own = -log_p.gather(1, hidden_tokens().unsqueeze(1)).sum();
      const double each = smoothing / double(kNumTokens - 1);
      const at::Tensor plain = own * (1 - smoothing - each) - log_p.sum() * each;
      const kernels::CrossEntropy got = made.head->loss(x, hidden_tokens());
      EXPECT_NEAR(got.loss_sum.item<double>(), plain.item<double>(), 1e-10);
      EXPECT_NEAR(got.nll_sum.item<double>(), own.item<double>(), 1e-10);
      const auto slopes = torch::autograd::grad({got.loss_sum}, parameters);
      const auto expected = torch::autograd::grad({plain}, parameters);
      for (size_t i = 0; i < slopes.size(); ++i)
        EXPECT_TRUE(at::allclose(slopes[i], expected[i], 1e-8, 1e-9)) << i << ", tied " << tied;
    }
  }
}

TEST(MaskedTokenHead, ItsActivationIsTheModelsAndOfGatedOnesGelu) {
  const torch::NoGradGuard no_grad;
  for (const char* activation : {"gelu", "gelu_tanh", "relu", "geglu", "swiglu"}) {
    const MaskedHead made = head_of(options_of(activation), true);
    EXPECT_TRUE(at::allclose(made.head->log_probs(masked_rows()),
                             plain_masked_log_probs(made, masked_rows(), activation), 1e-9, 1e-10))
        << activation;
  }
}

TEST(MaskedTokenHead, RightIsWhatHasTheLargestLogit) {
  const MaskedHead made = head_of(options_of(), true);
  const torch::NoGradGuard no_grad;
  const at::Tensor best = made.head->log_probs(masked_rows()).argmax(1);
  EXPECT_EQ(made.head->loss(masked_rows(), best).right_sum.item<int64_t>(), kMasked);
  at::Tensor half = best.clone();
  half[1] = (half[1].item<int64_t>() + 1) % kNumTokens;
  half[4] = (half[4].item<int64_t>() + 1) % kNumTokens;
  EXPECT_EQ(made.head->loss(masked_rows(), half).right_sum.item<int64_t>(), kMasked - 2);
}

TEST(MaskedTokenHead, PartsOfABatchAddUp) {
  const MaskedHead made = head_of(options_of(), true);
  const torch::NoGradGuard no_grad;
  const kernels::CrossEntropy all = made.head->loss(masked_rows(), hidden_tokens());
  const kernels::CrossEntropy first = made.head->loss(masked_rows().slice(0, 0, 2),
                                                      hidden_tokens().slice(0, 0, 2)),
                              rest = made.head->loss(masked_rows().slice(0, 2),
                                                     hidden_tokens().slice(0, 2));
  EXPECT_NEAR((first.loss_sum + rest.loss_sum).item<double>(), all.loss_sum.item<double>(), 1e-10);
  EXPECT_EQ((first.right_sum + rest.right_sum).item<int64_t>(), all.right_sum.item<int64_t>());
  EXPECT_TRUE(at::allclose(at::cat({first.token_nll, rest.token_nll}), all.token_nll));
}

TEST(MaskedTokenHead, ABatchWithoutMasksHasNoLoss) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    MaskedHead made = head_of(options_of(), true);
    made.head->to(dtype);
    made.table->to(dtype);
    const auto none = made.head->loss(at::zeros({0, kRowWidth}, dtype), at::zeros({0}, at::kLong));
    EXPECT_EQ(none.loss_sum.item<double>(), 0);
    EXPECT_EQ(none.right_sum.item<int64_t>(), 0);
    none.loss_sum.backward();
    EXPECT_EQ(made.head->bias.grad().abs().sum().item<double>(), 0);
  }
}

TEST(MaskedTokenHead, ATiedTableOfAnotherWidthIsRefused) {
  const nn::Init init(3, at::kCPU);
  const nn::Embedding table(init.child("embedding"), kTableRows, kRowWidth + 1, 0);
  EXPECT_THROW(MaskedTokenHead(options_of(), MaskedTokenHeadSetup{.init = init.child("head"),
                                                                  .rows = kTableRows,
                                                                  .num_classes = kNumTokens,
                                                                  .tied = table}),
               c10::Error);
}

TEST(MaskedTokenHead, OperationsAreThoseOfItsProducts) {
  for (const bool tied : {true, false})
    EXPECT_EQ(head_of(options_of(), tied).head->operations(),
              2 * kRowWidth * kRowWidth + 2 * kRowWidth * kTableRows);
}

}  // namespace
}  // namespace stretto::models
