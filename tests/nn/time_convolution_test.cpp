#include "nn/time_convolution.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kernels/gemm/packed_weights.h"

namespace stretto::nn {
namespace {

TimeConvolution small_convolution(bool weight_norm) {
  return TimeConvolution(
      Init(5, at::kCPU).child("layer"), 6, 4,
      TimeConvolutionOptions{.kernel = 3, .gain = 4, .weight_norm = weight_norm});
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

}  // namespace
}  // namespace stretto::nn
