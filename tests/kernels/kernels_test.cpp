#include "kernels/kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <cmath>
#include <string>

#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using cases::third;
using testing::expect_equal;
using testing::Inputs;
using testing::noise;
using testing::OwnProducts;
using testing::Threads;

TEST(Kernels, GradientsInDoubleEqualFiniteDifferences) {
  const Threads one_thread(1);  // thousands of tiny calls
  for (const cases::Case& one : cases::small()) {
    SCOPED_TRACE(one.name);
    testing::expect_gradients(one.run, one.inputs);
  }
}

TEST(Kernels, EveryLevelOfThisMachineEqualsTheReference) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const cases::Case& one : cases::large()) {
      SCOPED_TRACE(one.name + " at level " + level->name);
      expect_equal(one.run, one.reference, one.inputs, one.precision);
    }
  }
}

TEST(Kernels, OneThreadAndManyGiveTheSameBits) {
  for (const cases::Case& one : cases::large()) {
    SCOPED_TRACE(one.name);
    const Inputs alone = [&] {
      const Threads threads(1);
      return cases::value_and_gradients(one);
    }();
    const Threads threads(3);
    const Inputs shared = cases::value_and_gradients(one);
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(alone[i], shared[i])) << i;
  }
}

TEST(Kernels, OurOwnProductIsRightForFewRowsTooAndWithoutThreadsInItsBits) {
  const OwnProducts own;
  for (const auto& [n, d, o] : {std::array{1, 1, 2}, std::array{5, 6, 7}, std::array{3, 40, 2},
                                std::array{5, 2048, 512}, std::array{47, 3, 90}}) {
    for (const cases::Case& one : cases::products(n, d, o)) {
      SCOPED_TRACE(one.name + " " + std::to_string(n) + " " + std::to_string(d) + " " +
                   std::to_string(o));
      expect_equal(one.run, one.reference, one.inputs);
      const Inputs alone = [&] {
        const Threads threads(1);
        return cases::value_and_gradients(one);
      }();
      for (const int count : {2, 3, 8}) {
        const Threads threads(count);
        const Inputs shared = cases::value_and_gradients(one);
        for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(at::equal(alone[i], shared[i])) << i;
      }
    }
  }
}

TEST(Kernels, PackedSequencesEqualEachSequenceAlone) {
  const at::Tensor qkv = noise({40, 48}), kv = noise({40, 32}, 8);
  const Dropout drop = third(40);
  const auto attend = [&](int begin, int end) {
    Dropout own = drop;
    own.row_keys = drop.row_keys.slice(0, begin, end);
    const Offsets whole = cases::lengths({0, end - begin});
    return at::cat({self_attention(qkv.slice(0, begin, end), {whole, 2, true, own}),
                    cross_attention(qkv.slice(0, begin, end).slice(1, 0, 16),
                                    kv.slice(0, begin, end), {whole, whole, 2, own})},
                   1);
  };
  const Offsets offsets = cases::lengths({0, 7, 8, 40});
  const at::Tensor together =
      at::cat({self_attention(qkv, {offsets, 2, true, drop}),
               cross_attention(qkv.slice(1, 0, 16), kv, {offsets, offsets, 2, drop})},
              1);
  EXPECT_TRUE(at::equal(together, at::cat({attend(0, 7), attend(7, 8), attend(8, 40)})));
}

TEST(Kernels, PackedAttentionEqualsPaddedAttentionWithAMask) {
  const at::Tensor qkv = noise({12, 24});
  const at::Tensor got = self_attention(qkv, {cases::lengths({0, 5, 12}), 2, false, {}});
  at::Tensor padded = at::zeros({2, 7, 24});
  padded[0].slice(0, 0, 5).copy_(qkv.slice(0, 0, 5));
  padded[1].copy_(qkv.slice(0, 5, 12));
  at::Tensor seen = at::ones({2, 1, 1, 7}, at::kBool);
  seen[0].slice(2, 5, 7).fill_(false);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : padded.chunk(3, 2))
    parts.push_back(part.reshape({2, 7, 2, 4}).transpose(1, 2));
  const at::Tensor want = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], seen)
                              .transpose(1, 2)
                              .reshape({2, 7, 8});
  EXPECT_TRUE(at::allclose(got.slice(0, 0, 5), want[0].slice(0, 0, 5), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(got.slice(0, 5, 12), want[1], 1e-4, 1e-5));
}

TEST(Kernels, LongSequencesEqualTheReference) {
  const std::vector<int> bounds{0, 1100};
  for (const cases::Case& one : cases::attention(bounds, bounds, 16)) {
    SCOPED_TRACE(one.name);
    expect_equal(one.run, one.reference, one.inputs);
  }
}

TEST(Kernels, DropoutOfTwoHalvesEqualsDropoutOfTheWhole) {
  const at::Tensor x = noise({6, 37});
  const Dropout all = third(6);
  Dropout first = all, second = all;
  first.row_keys = all.row_keys.slice(0, 0, 3);
  second.row_keys = all.row_keys.slice(0, 3, 6);
  EXPECT_TRUE(at::equal(dropout(x, all), at::cat({dropout(x.slice(0, 0, 3), first),
                                                  dropout(x.slice(0, 3, 6), second)})));
}

TEST(Kernels, DropoutKeepsTheStatedShare) {
  const at::Tensor kept = dropout(at::ones({400, 512}), third(400)) > 0;
  EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 0.7, 0.005);
}

TEST(Kernels, ExtremeActivationsStayFinite) {
  const at::Tensor x = at::tensor({-1e30, -200.0, -90.0, 0.0, 90.0, 200.0}, at::kFloat)
                           .reshape({1, 6})
                           .requires_grad_(true);
  const at::Tensor gelu = bias_activation_dropout(x, at::zeros({6}), Activation::kGelu, {});
  const at::Tensor gated = swiglu_dropout(at::cat({x, at::ones({1, 6})}, 1), {});
  for (const at::Tensor& y : {gelu, gated}) {
    const auto slopes = torch::autograd::grad({y.sum()}, {x});
    EXPECT_TRUE(at::isfinite(y).all().item<bool>());
    EXPECT_TRUE(at::isfinite(slopes[0].slice(1, 1)).all().item<bool>()) << slopes[0];
  }
}

TEST(Kernels, ABiasThatDoesNotLearnChangesNoBitOfTheRest) {
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kReluSquared}) {
    const at::Tensor x = noise({70, 33}).requires_grad_(true), slope = noise({70, 33}, 3);
    const at::Tensor learned = noise({33}, 8).requires_grad_(true), fixed = learned.detach();
    const auto of = [&](const at::Tensor& bias) {
      return bias_activation_dropout(x, bias, activation, third(70));
    };
    const auto both = torch::autograd::grad({of(learned)}, {x, learned}, {slope});
    const auto alone = torch::autograd::grad({of(fixed)}, {x}, {slope});
    EXPECT_TRUE(at::equal(alone[0], both[0]));
    EXPECT_TRUE(at::allclose(both[1], both[0].sum(0), 1e-4, 1e-4));
  }
}

TEST(Kernels, RmsNormDividesByTheRootOfTheMeanSquareAndNothingElse) {
  // mean(9, 16) = 12.5; rows keep their mean. In a row of tiny numbers epsilon = 1e-6 is seen.
  const at::Tensor x = at::tensor({3.0, 4.0, 1e-3, 1e-3}, at::kDouble).reshape({2, 2});
  const at::Tensor weight = at::tensor({1.0, -2.0}, at::kDouble);
  const double root = std::sqrt(12.5 + 1e-6), small = std::sqrt(2e-6);
  const at::Tensor want =
      at::tensor({3 / root, -8 / root, 1e-3 / small, -2e-3 / small}, at::kDouble).reshape({2, 2});
  EXPECT_TRUE(at::allclose(rms_norm(x, weight), want, 1e-12));
  for (const bool with_gradient : {false, true}) {
    const at::AutoGradMode mode(with_gradient);
    const at::Tensor got = rms_norm(x.to(at::kFloat), weight.to(at::kFloat));
    EXPECT_TRUE(at::allclose(got.to(at::kDouble), want, 2e-6)) << got;
  }
}

TEST(Kernels, RmsNormOfHalfTypesIsComputedInFp32) {
  const at::Tensor weight = noise({33}, 8) + 1;
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    // The squares of these numbers are beyond the range of fp16.
    const at::Tensor x = (noise({5, 33}) * 2000).to(type).requires_grad_(true);
    const at::Tensor wide = x.detach().to(at::kDouble).requires_grad_(true);
    const at::Tensor got = rms_norm(x, weight);
    const at::Tensor mean_square = wide.pow(2).sum(1, /*keepdim=*/true) / 33;
    const at::Tensor want = wide / (mean_square + 1e-6).sqrt() * weight.to(at::kDouble);
    ASSERT_EQ(got.scalar_type(), type);
    const double rounding = type == at::kHalf ? 0x1p-11 : 0x1p-8;
    EXPECT_TRUE(at::allclose(got.detach().to(at::kDouble), want.detach(), 1.01 * rounding, 1e-6));
    const at::Tensor slope = noise({5, 33}, 3).to(type);
    const auto have = torch::autograd::grad({got}, {x}, {slope})[0].to(at::kDouble);
    const auto expected = torch::autograd::grad({want}, {wide}, {slope.to(at::kDouble)})[0];
    EXPECT_LT((have - expected).norm().item<double>(),
              2 * rounding * expected.norm().item<double>());
  }
}

TEST(Kernels, RmsNormRefusesAWeightOfAnotherWidth) {
  EXPECT_THROW(rms_norm(at::ones({2, 3}), at::ones({4})), c10::Error);
  EXPECT_THROW(rms_norm(at::ones({3}), at::ones({3})), c10::Error);
}

TEST(Kernels, CrossEntropyOfHandComputedLogits) {
  // Two classes with logits 0 and log 3: p = 1/4, 3/4; smoothing 0.2 gives e = 0.2 / 1.
  const at::Tensor weight = at::tensor({0.0, std::log(3.0)}, at::kFloat).reshape({2, 1});
  const CrossEntropy got =
      linear_cross_entropy(at::ones({1, 1}), weight, at::tensor({1}, at::kLong), 0.2, 2);
  const double right = -std::log(0.75), wrong = -std::log(0.25);
  EXPECT_NEAR(got.nll_sum.item<double>(), right, 1e-6);
  EXPECT_NEAR(got.loss_sum.item<double>(), 0.6 * right + 0.2 * (right + wrong), 1e-6);
}

TEST(Kernels, CrossEntropyOfEachTokenWhereNoGradientIsWanted) {
  // Two blocks of rows, and rounding rows of the table.
  const at::Tensor x = noise({700, 8}), weight = noise({16, 8}, 8);
  const at::Tensor targets = at::arange(700, at::kLong) % 11;
  const CrossEntropy got = linear_cross_entropy(x, weight, targets, 0.1, 11);
  const CrossEntropy plain = reference::linear_cross_entropy(x, weight, targets, 0.1, 11);
  ASSERT_EQ(got.token_nll.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::allclose(got.token_nll, plain.token_nll, 1e-5, 1e-6));
  const double sum = got.nll_sum.item<double>();
  EXPECT_NEAR(got.token_nll.sum().item<double>(), sum, 1e-6 * sum);
  const at::Tensor trained = weight.clone().requires_grad_(true);
  EXPECT_FALSE(linear_cross_entropy(x, trained, targets, 0.1, 11).token_nll.defined());
}

TEST(Kernels, CrossEntropyCountsTargetsWithTheLargestLogit) {
  const at::Tensor x = noise({700, 8}), weight = noise({16, 8}, 8), bias = noise({16}, 9);
  // Rounding rows would often be larger.
  const at::Tensor logits = (at::matmul(x, weight.t()) + bias).slice(1, 0, 11);
  at::Tensor targets = logits.argmax(1);
  targets.slice(0, 0, 600).copy_(at::arange(600, at::kLong) % 11);
  const auto right = logits.argmax(1).eq(targets).sum().item<int64_t>();
  ASSERT_GT(right, 100);
  for (const bool trained : {false, true}) {
    const at::Tensor table = weight.clone().requires_grad_(trained);
    const CrossEntropy got = linear_cross_entropy(x, table, targets, 0.1, 11, bias);
    EXPECT_EQ(got.right_sum.item<int64_t>(), right);
    EXPECT_FALSE(got.right_sum.requires_grad());
    EXPECT_EQ(
        reference::linear_cross_entropy(x, table, targets, 0.1, 11, bias).right_sum.item<int64_t>(),
        right);
  }
}

TEST(Kernels, ABiasOfAnotherLengthThanTheTableIsRefused) {
  const at::Tensor x = noise({9, 8}), weight = noise({16, 8}, 8);
  EXPECT_THROW(linear_cross_entropy(x, weight, at::arange(9, at::kLong), 0.1, 11, noise({11})),
               c10::Error);
}

TEST(Kernels, RoundingRowsOfTheTableGetNoGradient) {
  const at::Tensor x = noise({9, 8}), weight = noise({16, 8}, 8).requires_grad_(true);
  const at::Tensor targets = at::arange(9, at::kLong), bias = noise({16}).requires_grad_(true);
  linear_cross_entropy(x, weight, targets, 0.1, 11, bias).loss_sum.backward();
  EXPECT_EQ(weight.grad().slice(0, 11).abs().max().item<float>(), 0.0f);
  EXPECT_EQ(bias.grad().slice(0, 11).abs().max().item<float>(), 0.0f);
}

TEST(Kernels, CrossEntropyScalesWithTheGradientThatComesBack) {
  const at::Tensor x = noise({9, 8}).requires_grad_(true), weight = noise({16, 8}, 8);
  const at::Tensor targets = at::arange(9, at::kLong);
  const auto slope = [&](double scale) {
    const at::Tensor loss = linear_cross_entropy(x, weight, targets, 0.1, 16).loss_sum;
    return torch::autograd::grad({loss * scale}, {x})[0];
  };
  EXPECT_TRUE(at::allclose(slope(1.0) * 0.25, slope(0.25)));
}

TEST(Kernels, ACrossEntropyBeyondTheRangeOfFp32IsInfinite) {
  // Two tokens cost 2e38 each.
  const at::Tensor x = at::full({2, 1}, 1e19, at::kDouble);
  const at::Tensor weight = at::tensor({2e19, 0.0}, at::kDouble).reshape({2, 1});
  const at::Tensor targets = at::ones({2}, at::kLong);
  const auto cost = [&](at::ScalarType type, bool trained) {
    const CrossEntropy got = linear_cross_entropy(
        x.to(type), weight.to(type, false, true).requires_grad_(trained), targets, 0, 2);
    EXPECT_EQ(got.loss_sum.scalar_type(), type);
    EXPECT_EQ(got.nll_sum.scalar_type(), type);
    EXPECT_EQ(got.loss_sum.item<double>(), got.nll_sum.item<double>());
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

TEST(Kernels, DoubleStaysDouble) {
  const at::Tensor x = noise({5, 6}).to(at::kDouble), weight = noise({7, 6}, 8).to(at::kDouble);
  EXPECT_EQ(kernels::linear(x, weight).scalar_type(), at::kDouble);
  EXPECT_EQ(embed(weight, at::tensor({6, 0}, at::kLong), 2, {}).scalar_type(), at::kDouble);
  EXPECT_EQ(
      linear_cross_entropy(x, weight, at::arange(5, at::kLong), 0.1, 7).loss_sum.scalar_type(),
      at::kDouble);
}

}  // namespace
}  // namespace stretto::kernels
