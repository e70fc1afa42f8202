#include "nn/time_convolution.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using stretto::testing::noise;

TimeConvolution small_convolution(bool weight_norm, const LoraOptions& lora = {}) {
  return TimeConvolution(
      Init(5, at::kCPU).with_lora(lora).child("layer"), 6, 4,
      TimeConvolutionOptions{.kernel = 3, .gain = 4, .weight_norm = weight_norm});
}

const LoraOptions kLoraOfLayer{.rank = 2, .alpha = 6, .maps = {"layer"}};

/// With LoRA, B of which is not zero.
TimeConvolution trained_convolution(bool weight_norm) {
  TimeConvolution layer = small_convolution(weight_norm, kLoraOfLayer);
  const torch::NoGradGuard no_grad;
  layer->lora->b.copy_(noise(layer->lora->b.sizes(), 3));
  return layer;
}

/// With v = w + alpha / rank B A, row by row gain v / |v|; v itself where there is no gain.
at::Tensor plain_weight(const at::Tensor& w, const at::Tensor& a, const at::Tensor& b,
                        const at::Tensor& gain) {
  const at::Tensor v = w + 3 * at::matmul(b, a);
  return gain.defined() ? v * (gain / v.square().sum(1).sqrt()).unsqueeze(1) : v;
}

TEST(TimeConvolution, BeginsWithTheWeightsThatWereDrawn) {
  const TimeConvolution layer = small_convolution(true);
  const at::Tensor drawn =
      Init(5, at::kCPU).child("layer").normal("weight", 4, 18, std::sqrt(4.0 / 18));
  EXPECT_TRUE(at::equal(layer->weight, drawn));
  EXPECT_TRUE(at::allclose(layer->effective().weight, drawn));
}

TEST(TimeConvolution, HasLengthsOfItsOwnOnlyWithWeightNorm) {
  const TimeConvolution normed = small_convolution(true), plain = small_convolution(false);
  EXPECT_EQ(normed->parameters().size(), 3u);
  EXPECT_EQ(plain->parameters().size(), 2u);
  EXPECT_TRUE(plain->effective().weight.is_same(plain->weight));
  const torch::NoGradGuard no_grad;
  normed->gain.mul_(2);
  EXPECT_TRUE(at::allclose(normed->effective().weight, normed->weight * 2));
}

TEST(TimeConvolution, IsALinearMapWithOneTapAlone) {
  EXPECT_THROW(small_convolution(true)->forward(at::ones({2, 6})), c10::Error);
  const TimeConvolution map(Init(5, at::kCPU), 6, 4);
  const at::Tensor x = at::arange(12, at::kFloat).view({2, 6});
  EXPECT_TRUE(at::allclose(map->forward(x), at::matmul(x, map->weight.t()), 1e-5, 1e-5));
}

TEST(TimeConvolution, IsNormalisedOnceForAllDecoding) {
  kernels::PackedWeights kept;
  const kernels::PackedWeightsScope scope(kept);
  if (kernels::PackedWeightsScope::current() == nullptr) GTEST_SKIP() << "libtorch's product here";
  const TimeConvolution layer = small_convolution(true);
  EXPECT_FALSE(layer->effective().weight.is_same(layer->effective().weight));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(layer->effective().weight.is_same(layer->effective().weight));
}

TEST(TimeConvolution, WithLoraBeginsAsWithoutIt) {
  for (const bool weight_norm : {true, false}) {
    const TimeConvolution with = small_convolution(weight_norm, kLoraOfLayer);
    const TimeConvolution without = small_convolution(weight_norm);
    EXPECT_TRUE(at::equal(with->weight, without->weight)) << "no other number is drawn";
    EXPECT_TRUE(at::equal(with->effective().weight, without->effective().weight));
    std::vector<std::string> names{"weight", "gain", "bias", "lora_a", "lora_b"};
    if (!weight_norm) names.erase(names.begin() + 1);
    std::vector<std::string> found;
    for (const auto& item : with->named_parameters()) found.push_back(item.key());
    EXPECT_EQ(found, names);
    EXPECT_EQ(with->lora->a.sizes(), (std::vector<int64_t>{2, 18}));
    EXPECT_EQ(with->lora->b.sizes(), (std::vector<int64_t>{4, 2}));
    EXPECT_TRUE(
        at::equal(with->named_buffers()["lora_parts"], torch::tensor({4.f, 3.f}).view({1, 2})));
    EXPECT_EQ(with->lora->b.abs().max().item<float>(), 0);
    const float bound = 1 / std::sqrt(18.0f);
    EXPECT_LE(with->lora->a.abs().max().item<float>(), bound);
    EXPECT_GT(with->lora->a.abs().max().item<float>(), 0.5f * bound);
    EXPECT_EQ(without->lora, nullptr);
    const LoraOptions elsewhere{.rank = 2, .maps = {"another"}};
    EXPECT_EQ(small_convolution(weight_norm, elsewhere)->lora, nullptr);
  }
}

TEST(TimeConvolution, WithLoraMultipliesByTheSumAndNormalisesIt) {
  for (const bool weight_norm : {true, false}) {
    SCOPED_TRACE(weight_norm);
    TimeConvolution layer = trained_convolution(weight_norm);
    const at::Tensor narrow = layer->effective().weight.detach();
    EXPECT_FALSE(at::allclose(narrow, small_convolution(weight_norm)->weight, 0.1, 0.1));
    layer->to(at::kDouble);
    const at::Tensor want =
        plain_weight(layer->weight, layer->lora->a, layer->lora->b, layer->gain).detach();
    EXPECT_TRUE(at::allclose(narrow.to(at::kDouble), want, 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(layer->effective().weight, want, 1e-12, 1e-12));
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(at::allclose(layer->effective().weight, want, 1e-12, 1e-12));
  }
}

TEST(TimeConvolution, WithLoraHasTheGradientsOfItsFormula) {
  for (const bool weight_norm : {true, false}) {
    SCOPED_TRACE(weight_norm);
    TimeConvolution layer = trained_convolution(weight_norm);
    stretto::testing::Inputs inputs{layer->weight.detach(), layer->lora->a.detach(),
                                    layer->lora->b.detach()};
    if (weight_norm) inputs.push_back(layer->gain.detach());
    const stretto::testing::Function effective = [&](const stretto::testing::Inputs& now) {
      layer->weight = now[0];
      layer->lora->a = now[1];
      layer->lora->b = now[2];
      if (weight_norm) layer->gain = now[3];
      return layer->effective().weight;
    };
    const stretto::testing::Function plain = [&](const stretto::testing::Inputs& now) {
      return plain_weight(now[0], now[1], now[2], weight_norm ? now[3] : at::Tensor());
    };
    stretto::testing::expect_gradients(effective, inputs);
    stretto::testing::expect_equal(effective, plain, inputs);
  }
}

TEST(TimeConvolution, WithLoraComputesNoGradientOfWhatIsFrozen) {
  for (const bool weight_norm : {true, false}) {
    SCOPED_TRACE(weight_norm);
    TimeConvolution layer = trained_convolution(weight_norm);
    const auto gradients = [&] {
      for (at::Tensor& parameter : layer->parameters()) parameter.mutable_grad() = at::Tensor();
      (layer->effective().weight * noise({4, 18}, 9)).sum().backward();
      return std::pair{layer->lora->a.grad().clone(), layer->lora->b.grad().clone()};
    };
    const auto [a, b] = gradients();
    EXPECT_TRUE(layer->weight.grad().defined());
    for (at::Tensor* frozen : {&layer->weight, &layer->gain, &layer->bias}) {
      if (frozen->defined()) frozen->set_requires_grad(false);
    }
    const auto [alone_a, alone_b] = gradients();
    EXPECT_TRUE(at::equal(alone_a, a) && at::equal(alone_b, b));
    EXPECT_GT(a.abs().max().item<float>(), 0);
    EXPECT_GT(b.abs().max().item<float>(), 0);
    EXPECT_FALSE(layer->weight.grad().defined());
    EXPECT_FALSE(weight_norm && layer->gain.grad().defined());
  }
}

TEST(TimeConvolution, WithLoraAndWithoutGradientsHasTheBitsOfTheMergedOne) {
  for (const bool weight_norm : {true, false}) {
    SCOPED_TRACE(weight_norm);
    const TimeConvolution layer = trained_convolution(weight_norm);
    const TimeConvolution merged = small_convolution(weight_norm);
    const torch::NoGradGuard no_grad;
    merged->weight.copy_(layer->lora->merged(layer->weight));
    EXPECT_TRUE(at::equal(layer->effective().weight, merged->effective().weight));
    kernels::PackedWeights kept;
    const kernels::PackedWeightsScope scope(kept);
    if (kernels::PackedWeightsScope::current() == nullptr) continue;
    EXPECT_TRUE(layer->effective().weight.is_same(layer->effective().weight)) << "merged once";
    EXPECT_TRUE(at::equal(layer->effective().weight, merged->effective().weight));
  }
}

TEST(TimeConvolution, TellsOfItsLora) {
  torch::nn::Module with, without;
  with.register_module("layer", trained_convolution(true));
  without.register_module("layer", small_convolution(true));
  ASSERT_NE(lora_of(with), nullptr);
  EXPECT_EQ(lora_of(with)->alpha, 6);
  EXPECT_EQ(lora_of(without), nullptr);
}

}  // namespace
}  // namespace stretto::nn
