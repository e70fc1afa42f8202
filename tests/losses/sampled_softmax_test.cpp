#include "losses/sampled_softmax.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "losses/registry.h"

namespace stretto::losses {
namespace {

constexpr int64_t kSampledClasses = 12, kSampledRows = 14, kSampledWidth = 5;

nn::OutputLoss whole_loss() {
  return make_loss({.label_smoothing = 0});
}

struct SampledCase {
  at::Tensor x = random({4, kSampledWidth}, 1), weight = random({kSampledRows, kSampledWidth}, 2),
             bias = random({kSampledRows}, 3), targets = at::tensor({0, 11, 3, 0}, at::kLong);

  static at::Tensor random(at::IntArrayRef sizes, uint64_t seed) {
    return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble).requires_grad_(true);
  }
};

TEST(SampledSoftmax, DrawsFrequentClassesByTheLogUniformLaw) {
  double sum = 0;
  for (int64_t c = 0; c < kSampledClasses; ++c) sum += log_uniform_probability(c, kSampledClasses);
  EXPECT_NEAR(sum, 1, 1e-12);
  const int64_t draws = 200'000;
  std::vector<double> counts(kSampledClasses);
  for (const int64_t c : log_uniform_samples(5, draws, kSampledClasses)) {
    counts.at(static_cast<size_t>(c)) += 1;
  }
  for (int64_t c = 0; c < kSampledClasses; ++c) {
    EXPECT_NEAR(counts[static_cast<size_t>(c)] / static_cast<double>(draws),
                log_uniform_probability(c, kSampledClasses), 0.005)
        << c;
  }
  EXPECT_EQ(log_uniform_samples(5, 20, 100), log_uniform_samples(5, 20, 100));
  EXPECT_NE(log_uniform_samples(5, 20, 100), log_uniform_samples(6, 20, 100));
}

TEST(SampledSoftmax, LossAndGradientsAreThoseOfThePlainFormula) {
  constexpr int64_t kSamples = 7;
  const SampledCase given;
  const auto loss = sampled_softmax(kSamples, whole_loss());
  const SampleScope scope(77);
  const auto got = loss(given.x, given.weight, given.targets, kSampledClasses, given.bias);
  const auto samples = log_uniform_samples(77, kSamples, kSampledClasses);
  const at::Tensor logits = at::linear(given.x, given.weight, given.bias);
  at::Tensor want = at::zeros({}, at::kDouble);
  for (int64_t n = 0; n < 4; ++n) {
    const int64_t target = given.targets[n].item<int64_t>();
    at::Tensor normaliser = logits[n][target].exp();
    for (const int64_t c : samples) {
      if (c == target) continue;
      normaliser = normaliser +
                   logits[n][c].exp() / (kSamples * log_uniform_probability(c, kSampledClasses));
    }
    want = want - logits[n][target] + normaliser.log();
  }
  EXPECT_NEAR(got.loss_sum.item<double>(), want.item<double>(), 1e-10);
  EXPECT_EQ(got.nll_sum.item<double>(), got.loss_sum.item<double>());
  EXPECT_FALSE(got.nll_sum.requires_grad());
  const std::vector<at::Tensor> inputs{given.x, given.weight, given.bias};
  const auto slopes = torch::autograd::grad({got.loss_sum}, inputs);
  const auto wanted = torch::autograd::grad({want}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(at::allclose(slopes[i], wanted[i], 1e-9, 1e-11)) << i;
  }
}

TEST(SampledSoftmax, ComesToTheWholeLossWithManySamples) {
  const SampledCase given;
  const auto whole = whole_loss()(given.x, given.weight, given.targets, kSampledClasses, {});
  const SampleScope scope(3);
  const auto loss = sampled_softmax(100'000, whole_loss());
  const auto got = loss(given.x, given.weight, given.targets, kSampledClasses, {});
  EXPECT_NEAR(got.loss_sum.item<double>(), whole.loss_sum.item<double>(), 0.05);
}

TEST(SampledSoftmax, IsTheWholeLossWithoutGradientsAndNeedsAScopeWithThem) {
  const SampledCase given;
  const auto loss = sampled_softmax(3, whole_loss());
  const auto run = [&] {
    return loss(given.x, given.weight, given.targets, kSampledClasses, given.bias);
  };
  EXPECT_THROW(run(), c10::Error);
  {
    const SampleScope outer(1);
    {
      const SampleScope inner(2);
      EXPECT_EQ(SampleScope::current(), 2u);
    }
    EXPECT_EQ(SampleScope::current(), 1u);
    EXPECT_NE(run().loss_sum.item<double>(), 0);
  }
  EXPECT_FALSE(SampleScope::current().has_value());
  const torch::NoGradGuard no_grad;
  const auto want = whole_loss()(given.x, given.weight, given.targets, kSampledClasses, given.bias);
  EXPECT_EQ(run().nll_sum.item<double>(), want.nll_sum.item<double>());
  EXPECT_TRUE(at::equal(run().token_nll, want.token_nll));
}

TEST(SampledSoftmax, RefusesTargetsBeyondTheVocabulary) {
  const SampledCase given;
  const SampleScope scope(1);
  EXPECT_THROW(sampled_softmax(0, whole_loss()), c10::Error);
  EXPECT_THROW(sampled_softmax(3, whole_loss())(given.x, given.weight,
                                                at::full({4}, kSampledClasses, at::kLong),
                                                kSampledClasses, given.bias),
               c10::Error);
}

}  // namespace
}  // namespace stretto::losses
