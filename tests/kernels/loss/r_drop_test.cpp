#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/compute.h"
#include "kernels/kernels.h"
#include "tests/kernels/cases.h"
#include "tests/parallel/refusing_allocator.h"

namespace stretto::kernels {
namespace {

using testing::Inputs;
using testing::noise;
using testing::Precision;

constexpr int64_t kTokens = 6, kInputs = 4, kClasses = 5;

/// Two passes over six tokens, and a table with two rounding rows.
struct TwoPasses {
  at::Tensor x = noise({2 * kTokens, kInputs});
  at::Tensor weight = noise({kClasses + 2, kInputs}, 8);
  at::Tensor targets = at::arange(kTokens, at::kLong) % kClasses;
  RDrop options{.smoothing = 0.1, .alpha = 3, .num_classes = kClasses};
  at::Tensor bias = {};  ///< undefined = none

  at::Tensor bias_in(at::ScalarType type) const { return bias.defined() ? bias.to(type) : bias; }
  CrossEntropy sums(at::ScalarType type) const {
    return linear_r_drop(x.to(type), weight.to(type), targets, options, bias_in(type));
  }
};

TwoPasses with_a_bias() {
  TwoPasses passes;
  passes.bias = noise({kClasses + 2}, 9);
  return passes;
}

/// Without a bias and with one.
std::vector<TwoPasses> both_projections() {
  return {TwoPasses(), with_a_bias()};
}

/// As TwoPasses, written in loops.
struct PlainSums {
  double loss = 0, nll = 0, kl = 0;

  explicit PlainSums(const TwoPasses& of) {
    at::Tensor logits =
        at::mm(of.x.to(at::kDouble), of.weight.slice(0, 0, kClasses).to(at::kDouble).t());
    if (of.bias.defined()) logits = logits + of.bias.slice(0, 0, kClasses).to(at::kDouble);
    for (int64_t n = 0; n < kTokens; ++n) {
      const auto p = distribution(logits[n]), q = distribution(logits[kTokens + n]);
      const auto target = static_cast<size_t>(of.targets[n].item<int64_t>());
      double distance = 0, smoothed = 0;
      for (size_t v = 0; v < p.size(); ++v) {
        distance += (p[v] * std::log(p[v] / q[v]) + q[v] * std::log(q[v] / p[v])) / 2;
        const double share =
            v == target ? 1 - of.options.smoothing : of.options.smoothing / (kClasses - 1);
        smoothed -= share * (std::log(p[v]) + std::log(q[v])) / 2;
      }
      nll -= (std::log(p[target]) + std::log(q[target])) / 2;
      kl += distance;
      loss += smoothed + of.options.alpha * distance / 2;
    }
  }

  static std::vector<double> distribution(const at::Tensor& logits) {
    std::vector<double> p(kClasses);
    double sum = 0;
    for (size_t v = 0; v < p.size(); ++v) {
      p[v] = std::exp(logits[static_cast<int64_t>(v)].item<double>());
      sum += p[v];
    }
    for (double& each : p) each /= sum;
    return p;
  }
};

TEST(RDrop, IsHalfThePapersLossInItsPlainFormula) {
  for (const TwoPasses& passes : both_projections()) {
    SCOPED_TRACE(passes.bias.defined() ? "with a bias" : "without a bias");
    const PlainSums want(passes);
    for (const auto type : {at::kFloat, at::kDouble}) {
      const double tolerance = type == at::kDouble ? 1e-12 : 1e-5;
      const CrossEntropy got = passes.sums(type);
      EXPECT_NEAR(got.loss_sum.item<double>(), want.loss, tolerance * want.loss);
      EXPECT_NEAR(got.nll_sum.item<double>(), want.nll, tolerance * want.nll);
      EXPECT_NEAR(got.kl_sum.item<double>(), want.kl, tolerance * want.kl);
    }
    EXPECT_GT(want.kl, 0.1) << "the test tells nothing";
  }
}

TEST(RDrop, WithABiasEqualsTheReferenceInEveryType) {
  const TwoPasses passes = with_a_bias();
  const std::vector<Precision> precisions{{at::kDouble, 1e-10, 1e-10, 1e-10},
                                          {at::kFloat},
                                          {at::kHalf, 4e-3, 4e-3, 4e-3},
                                          {at::kBFloat16, 3e-2, 3e-2, 3e-2}};
  for (const Precision& precision : precisions) {
    testing::expect_equal(
        [&](const Inputs& in) {
          return linear_r_drop(in[0], in[1], passes.targets, passes.options, in[2]).loss_sum;
        },
        [&](const Inputs& in) {
          return reference::linear_r_drop(in[0], in[1], passes.targets, passes.options, in[2])
              .loss_sum;
        },
        {passes.x * 0.5, passes.weight * 0.5, passes.bias}, precision);
  }
}

TEST(RDrop, ABiasMayHaveATypeOfItsOwn) {
  const TwoPasses passes = with_a_bias();
  for (const auto& [type, of_bias] :
       {std::pair{at::kFloat, at::kDouble}, std::pair{at::kDouble, at::kFloat}}) {
    const at::Tensor bias = passes.bias.to(of_bias, false, true).requires_grad_(true);
    const at::Tensor loss = linear_r_drop(passes.x.to(type), passes.weight.to(type), passes.targets,
                                          passes.options, bias)
                                .loss_sum;
    EXPECT_EQ(loss.scalar_type(), type);
    EXPECT_EQ(loss.item<double>(), passes.sums(type).loss_sum.item<double>());
    const at::Tensor slope = torch::autograd::grad({loss}, {bias})[0];
    EXPECT_EQ(slope.scalar_type(), of_bias);
    EXPECT_GT(slope.abs().max().item<double>(), 0.1);
  }
}

TEST(RDrop, OfEqualPassesIsTheCrossEntropyOfOne) {
  for (TwoPasses& passes : both_projections()) {
    const at::Tensor one = passes.x.slice(0, 0, kTokens);
    passes.x = at::cat({one, one});
    for (const auto type : {at::kFloat, at::kDouble}) {
      const CrossEntropy pair = passes.sums(type);
      const CrossEntropy alone =
          linear_cross_entropy(one.to(type), passes.weight.to(type), passes.targets, 0.1, kClasses,
                               passes.bias_in(type));
      EXPECT_NEAR(pair.kl_sum.item<double>(), 0, 1e-6);
      EXPECT_NEAR(pair.loss_sum.item<double>(), alone.loss_sum.item<double>(), 1e-5);
      EXPECT_NEAR(pair.nll_sum.item<double>(), alone.nll_sum.item<double>(), 1e-5);
    }
  }
}

TEST(RDrop, PullsTwoPassesTogether) {
  TwoPasses passes;
  const auto distance_after_a_step = [&](double alpha) {
    passes.options.alpha = alpha;
    const at::Tensor x = passes.x.clone().requires_grad_(true);
    const at::Tensor loss =
        linear_r_drop(x, passes.weight, passes.targets, passes.options).loss_sum;
    const at::Tensor slope = torch::autograd::grad({loss}, {x})[0];
    return linear_r_drop(passes.x - 0.01 * slope, passes.weight, passes.targets, passes.options)
        .kl_sum.item<double>();
  };
  EXPECT_LT(distance_after_a_step(10), distance_after_a_step(0));
}

TEST(RDrop, ScalesWithTheGradientThatComesBack) {
  const TwoPasses passes = with_a_bias();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto slopes = [&](double scale) {
      Inputs in{passes.x.to(type, false, true).requires_grad_(true),
                passes.weight.to(type, false, true).requires_grad_(true),
                passes.bias.to(type, false, true).requires_grad_(true)};
      const at::Tensor loss =
          linear_r_drop(in[0], in[1], passes.targets, passes.options, in[2]).loss_sum;
      return torch::autograd::grad({loss * scale}, in);
    };
    const auto once = slopes(1), eight = slopes(8);
    for (size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(at::equal(once[i] * 8, eight[i])) << i;
  }
}

TEST(RDrop, RoundingRowsOfTheTableHaveNoGradient) {
  const TwoPasses passes;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const at::Tensor weight = passes.weight.to(type, false, true).requires_grad_(true);
    linear_r_drop(passes.x.to(type), weight, passes.targets, passes.options).loss_sum.backward();
    EXPECT_EQ(weight.grad().slice(0, kClasses).abs().max().item<double>(), 0);
    EXPECT_GT(weight.grad().slice(0, 0, kClasses).abs().min().item<double>(), 0);
  }
}

TEST(RDrop, RoundingEntriesOfTheBiasHaveNoPartAndNoGradient) {
  const TwoPasses passes = with_a_bias();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const at::Tensor bias = passes.bias.to(type, false, true);
    bias.slice(0, kClasses).fill_(50);
    bias.requires_grad_(true);
    const at::Tensor loss = linear_r_drop(passes.x.to(type), passes.weight.to(type), passes.targets,
                                          passes.options, bias)
                                .loss_sum;
    EXPECT_EQ(loss.item<double>(), passes.sums(type).loss_sum.item<double>());
    loss.backward();
    ASSERT_EQ(bias.grad().sizes(), bias.sizes());
    EXPECT_EQ(bias.grad().slice(0, kClasses).abs().max().item<double>(), 0);
    EXPECT_GT(bias.grad().slice(0, 0, kClasses).abs().min().item<double>(), 0);
  }
}

// A projection that is frozen but for its bias.
TEST(RDrop, ABiasThatAloneIsTrainedHasTheSameGradient) {
  const TwoPasses passes = with_a_bias();
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto slope = [&](bool all) {
      const at::Tensor x = passes.x.to(type, false, true).requires_grad_(all),
                       weight = passes.weight.to(type, false, true).requires_grad_(all),
                       bias = passes.bias.to(type, false, true).requires_grad_(true);
      const at::Tensor loss =
          linear_r_drop(x, weight, passes.targets, passes.options, bias).loss_sum;
      return torch::autograd::grad({loss}, {bias})[0];
    };
    EXPECT_TRUE(at::equal(slope(false), slope(true)));
  }
}

// Slopes of logits grow with alpha: they must neither overflow nor vanish.
TEST(RDrop, InHalfPrecisionGradientsAreNearThoseOfFp32) {
  const at::Tensor x = noise({128, 32}), weight = noise({400, 32}, 8) * 0.3, bias = noise({400}, 9);
  const at::Tensor targets = at::arange(64, at::kLong) * 6;
  for (const double alpha : {0.0, 5.0, 50.0}) {
    const auto gradients = [&](Compute compute, double scale) {
      const ComputeScope scope(compute);
      Inputs in{x.clone().requires_grad_(true), weight.clone().requires_grad_(true),
                bias.clone().requires_grad_(true)};
      const RDrop options{.smoothing = 0.1, .alpha = alpha, .num_classes = 400};
      const at::Tensor loss = linear_r_drop(in[0], in[1], targets, options, in[2]).loss_sum;
      Inputs all = torch::autograd::grad({loss * scale}, in);
      for (at::Tensor& slope : all) slope = slope / scale;
      return all;
    };
    const Inputs want = gradients(Compute::kFp32, 1);
    for (const Compute compute : {Compute::kBf16, Compute::kFp16})
      for (const double scale : {1.0, 128.0}) {
        const Inputs got = gradients(compute, scale);
        for (size_t i = 0; i < want.size(); ++i) {
          const double off =
              (got[i] - want[i]).norm().item<double>() / want[i].norm().item<double>();
          EXPECT_LT(off, 0.05) << alpha << ' ' << scale << ' ' << i;
          EXPECT_GT(off, 0) << "nothing was rounded";
        }
      }
  }
}

TEST(RDrop, BeyondTheRangeOfFp32IsInfinite) {
  // Two tokens cost 2e38 each, in both passes.
  const at::Tensor x = at::full({4, 1}, 1e19, at::kDouble);
  const at::Tensor weight = at::tensor({2e19, 0.0}, at::kDouble).reshape({2, 1});
  const at::Tensor targets = at::ones({2}, at::kLong);
  const auto cost = [&](at::ScalarType type, bool trained) {
    const CrossEntropy got =
        linear_r_drop(x.to(type), weight.to(type, false, true).requires_grad_(trained), targets,
                      {.smoothing = 0, .alpha = 3, .num_classes = 2});
    EXPECT_EQ(got.loss_sum.scalar_type(), type);
    EXPECT_EQ(got.loss_sum.item<double>(), got.nll_sum.item<double>());
    EXPECT_EQ(got.kl_sum.item<double>(), 0);
    return got.loss_sum.item<double>();
  };
  for (const bool trained : {false, true}) {
    EXPECT_NEAR(cost(at::kDouble, trained), 4e38, 1e26);
    for (const Compute compute : {Compute::kFp32, Compute::kBf16}) {
      const ComputeScope scope(compute);
      EXPECT_EQ(cost(at::kFloat, trained), INFINITY) << static_cast<int>(compute);
    }
  }
}

TEST(RDrop, NeverHoldsTheLogitsOfAllTokens) {
  struct Size {
    at::ScalarType type;
    int64_t tokens, classes;
  };
  for (const auto& [type, tokens, classes] :
       {Size{at::kFloat, 2048, 2000}, Size{at::kDouble, 512, 8192}}) {
    const at::Tensor x = noise({2 * tokens, 8}).to(type).requires_grad_(true);
    const at::Tensor weight = noise({classes, 8}, 8).to(type).requires_grad_(true);
    const at::Tensor bias = noise({classes}, 9).to(type).requires_grad_(true);
    const at::Tensor targets = at::arange(tokens, at::kLong) % classes;
    const auto whole =
        static_cast<size_t>(tokens * classes) * static_cast<size_t>(x.element_size());
    const test::RefusingScope scope;
    test::refusal() = {};
    linear_r_drop(x, weight, targets, {.smoothing = 0.1, .alpha = 5, .num_classes = classes}, bias)
        .loss_sum.backward();
    EXPECT_LT(test::refusal().largest, whole / 2) << toString(type);
    EXPECT_GT(test::refusal().largest, 0u);
  }
}

TEST(RDrop, OperandsThatDoNotFitAreRefused) {
  const TwoPasses passes;
  const auto refuse = [&](const at::Tensor& x, const at::Tensor& targets, const RDrop& options) {
    EXPECT_THROW(linear_r_drop(x, passes.weight, targets, options), c10::Error);
  };
  refuse(passes.x.slice(0, 1), passes.targets, passes.options);
  refuse(passes.x, at::full_like(passes.targets, kClasses), passes.options);
  refuse(passes.x, passes.targets, {.alpha = -1, .num_classes = kClasses});
  refuse(passes.x, passes.targets, {.alpha = 1, .num_classes = kClasses + 3});
  for (const at::Tensor& bias : {noise({kClasses}), noise({kClasses + 2, 1})}) {
    EXPECT_THROW(linear_r_drop(passes.x, passes.weight, passes.targets, passes.options, bias),
                 c10::Error);
  }
  EXPECT_NO_THROW(passes.sums(at::kFloat));
}

}  // namespace
}  // namespace stretto::kernels
