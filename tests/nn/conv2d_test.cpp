#include "nn/conv2d.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/compute.h"
#include "kernels/gemm/packed_weights.h"
#include "nn/pooling.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using testing::Inputs, testing::noise;

at::Tensor rounded_to_bf16(const at::Tensor& x) {
  return x.to(at::kBFloat16).to(at::kFloat);
}

TEST(Convolution2d, HasTheGradientsOfItsValues) {
  const kernels::PlaneWindow window{.stride = 2, .padding = 1, .groups = 2};
  testing::expect_gradients(
      [&](const Inputs& in) { return kernels::convolution_2d(in[0], in[1], in[2], window); },
      {noise({2, 4, 5, 4}, 1), noise({6, 2, 3, 3}, 2), noise({6}, 3)});
}

TEST(Convolution2d, IsLibtorchsInChannelsLastMemory) {
  for (const int64_t channels : {1, 3}) {  // of one channel the layout is ambiguous
    const at::Tensor x = noise({2, channels, 7, 6}, 1), weight = noise({4, channels, 3, 3}, 2);
    const at::Tensor y = kernels::convolution_2d(x, weight, {}, {.stride = 1, .padding = 1});
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast)) << channels;
    EXPECT_TRUE(at::allclose(y, at::conv2d(x, weight, {}, 1, 1), 1e-5, 1e-5)) << channels;
  }
  EXPECT_EQ(kernels::convolution_2d(noise({0, 3, 7, 6}), noise({4, 3, 3, 3}), {}).sizes(),
            (std::vector<int64_t>{0, 4, 5, 4}));
}

TEST(Convolution2d, RoundsOperandsAndResultsInHalfPrecision) {
  const kernels::PlaneWindow window{.stride = 1, .padding = 1};
  at::Tensor x = noise({2, 3, 5, 5}, 1), weight = noise({4, 3, 3, 3}, 2);
  at::Tensor bias = noise({4}, 3);
  const at::Tensor slope = noise({2, 4, 5, 5}, 4);
  const auto with_gradients = [&](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return Inputs{a.detach().requires_grad_(true), b.detach().requires_grad_(true),
                  c.detach().requires_grad_(true)};
  };
  const Inputs half = with_gradients(x, weight, bias);
  at::Tensor y;
  {
    const kernels::ComputeScope scope(kernels::Compute::kBf16);
    y = kernels::convolution_2d(half[0], half[1], half[2], window);
  }
  const auto got = torch::autograd::grad({y}, half, {slope});  // behind the scope

  const Inputs wide =
      with_gradients(rounded_to_bf16(x), rounded_to_bf16(weight), rounded_to_bf16(bias));
  const at::Tensor plain = at::conv2d(wide[0], wide[1], wide[2], 1, 1);
  const auto want = torch::autograd::grad({plain}, wide, {rounded_to_bf16(slope)});
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(y, rounded_to_bf16(y)));
  EXPECT_TRUE(at::allclose(y, plain, 1e-2, 1e-2));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(got[i], rounded_to_bf16(got[i]))) << i;
    EXPECT_TRUE(at::allclose(got[i], want[i], 2e-2, 2e-2)) << i;
  }
  EXPECT_TRUE(at::allclose(got[2], slope.sum({0, 2, 3}), 1e-5, 1e-5));  // no product: not rounded
}

TEST(Convolution2d, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(kernels::convolution_2d(noise({1, 3, 5, 5}), noise({4, 2, 3, 3}), {}), c10::Error);
  EXPECT_THROW(kernels::convolution_2d(noise({1, 3, 2, 5}), noise({4, 3, 3, 3}), {}), c10::Error);
  EXPECT_THROW(kernels::convolution_2d(noise({1, 3, 5, 5}), noise({4, 3, 3, 3}), noise({3})),
               c10::Error);
  EXPECT_THROW(kernels::convolution_2d(noise({3, 5, 5}), noise({4, 3, 3, 3}), {}), c10::Error);
}

TEST(Conv2d, KnowsItsExtentAndItsCost) {
  const Conv2d conv(Init(1, at::kCPU), 6, 8,
                    Conv2dOptions{.kernel = 3, .stride = 2, .padding = 1, .groups = 2});
  const at::Tensor y = conv->forward(noise({1, 6, 9, 12}));
  const Extent out = conv->out_of({9, 12});
  EXPECT_EQ(out.height, y.size(2));
  EXPECT_EQ(out.width, y.size(3));
  EXPECT_DOUBLE_EQ(conv->operations({9, 12}), 2.0 * 3 * 9 * static_cast<double>(y.numel()));
  EXPECT_EQ(conv->out_of({0, 12}).height, 0);
}

TEST(Conv2d, StartsByItsRule) {
  const Conv2d conv(Init(1, at::kCPU), 64, 128,
                    Conv2dOptions{.kernel = 3, .bias = true, .rule = he_fan_out(128, 3)});
  EXPECT_NEAR(conv->weight.std().item<double>(), std::sqrt(2.0 / (128 * 9)), 3e-4);
  EXPECT_TRUE(at::equal(conv->bias, at::zeros(128)));
}

TEST(Convolved, PutsTheNormIntoTheFiltersInEvaluation) {
  for (const bool biased : {false, true}) {
    Conv2d conv(Init(1, at::kCPU), 4, 6, Conv2dOptions{.padding = 1, .bias = biased});
    BatchNorm norm(Init(2, at::kCPU), 6);
    for (torch::nn::Module* module : std::vector<torch::nn::Module*>{conv.get(), norm.get()}) {
      module->to(at::kDouble);
      module->eval();
      const at::NoGradGuard no_grad;
      for (auto& tensor : module->parameters()) tensor.add_(0.5 * noise(tensor.sizes(), 5));
      for (auto& tensor : module->buffers()) tensor.add_(noise(tensor.sizes(), 6).abs());
    }
    const at::Tensor x = noise({2, 4, 5, 5}, 7).to(at::kDouble);
    const at::Tensor want = norm->forward(conv->forward(x)).detach();
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::allclose(convolved(x, conv, norm), want, 1e-10, 1e-10));
    EXPECT_TRUE(at::allclose(convolved(x, conv, norm, {.end = kernels::PlaneEnd::kRelu}),
                             want.relu(), 1e-10, 1e-10));
    const at::Tensor beside = noise(want.sizes(), 8).to(at::kDouble);
    EXPECT_TRUE(at::allclose(
        convolved(x, conv, norm, {.end = kernels::PlaneEnd::kGelu, .residual = beside}),
        at::gelu(want + beside), 1e-10, 1e-10));
  }
}

TEST(Convolved, MakesItsFiltersOnceForManyBatches) {
  const Conv2d conv(Init(1, at::kCPU), 4, 6, Conv2dOptions{.padding = 1});
  BatchNorm norm(Init(2, at::kCPU), 6);
  norm->eval();
  norm->running_var.add_(noise({6}, 6).abs());
  const at::NoGradGuard no_grad;
  kernels::PackedWeights weights;
  const kernels::PackedWeightsScope scope(weights);
  for (const uint64_t seed : {1, 2}) {
    const at::Tensor x = noise({2, 4, 5, 5}, seed);
    EXPECT_TRUE(
        at::allclose(convolved(x, conv, norm), norm->forward(conv->forward(x)), 1e-4, 1e-5));
  }
  if (kernels::PackedWeightsScope::current() == nullptr) {
    GTEST_SKIP() << "libtorch's products are taken here, and nothing is kept";
  }
  bool is_made_again = false;
  const at::Tensor kept = weights.made_of(conv->weight, [&] {
    is_made_again = true;
    return conv->weight;
  });
  EXPECT_FALSE(is_made_again);
  EXPECT_TRUE(at::allclose(kept, conv->weight * norm->running_map().scale.view({-1, 1, 1, 1})));
}

TEST(Convolved, TakesTheStatisticsOfABatchInTrainingWithoutGradientsToo) {
  const Conv2d conv(Init(1, at::kCPU), 3, 5);
  const BatchNorm norm(Init(2, at::kCPU), 5);
  const at::NoGradGuard no_grad;
  const at::Tensor y = convolved(noise({4, 3, 6, 6}), conv, norm);
  EXPECT_LT(y.mean({0, 2, 3}).abs().max().item<double>(), 1e-5);
  EXPECT_GT(norm->running_mean.abs().max().item<double>(), 0);
}

TEST(BatchNorm, WithoutALearnedGammaHasAFrozenOne) {
  const BatchNorm norm(Init(2, at::kCPU), 5, BatchNormOptions{.learns_gamma = false});
  EXPECT_FALSE(norm->weight.requires_grad());
  EXPECT_TRUE(norm->bias.requires_grad());
  const at::Tensor y = norm->forward(noise({8, 5, 2, 2}));
  y.square().sum().backward();
  EXPECT_TRUE(norm->bias.grad().defined());
  EXPECT_FALSE(norm->weight.grad().defined());
}

/// "SAME" by TensorFlow's rule, with padding of its own.
at::Tensor padded_pool(const at::Tensor& x, int64_t kernel, int64_t stride) {
  std::vector<int64_t> ends;
  for (const int64_t dim : {3, 2}) {
    const int64_t size = x.size(dim), out = (size + stride - 1) / stride;
    const int64_t padding = std::max<int64_t>((out - 1) * stride + kernel - size, 0);
    ends.insert(ends.end(), {padding / 2, padding - padding / 2});
  }
  return at::max_pool2d(at::constant_pad_nd(x, ends, -std::numeric_limits<double>::infinity()),
                        kernel, stride);
}

TEST(Pooling, PadsAsTensorFlowsSame) {
  for (int64_t size = 4; size < 10; ++size) {
    const at::Tensor x = noise({2, 3, size, 11 - size / 2}, 3);
    EXPECT_TRUE(at::equal(max_pool_same(x, 3, 2), padded_pool(x, 3, 2))) << size;
    EXPECT_TRUE(at::equal(max_pool_same(x, 2, 2), padded_pool(x, 2, 2))) << size;
  }
}

TEST(Pooling, OfAWholePlane) {
  const at::Tensor x = noise({2, 3, 4, 5}, 3);
  EXPECT_TRUE(at::allclose(mean_of_plane(x), x.mean({2, 3})));
  EXPECT_TRUE(at::equal(max_of_plane(x), x.amax({2, 3})));
  const Extent pooled = pooled_extent({112, 57}, {.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(pooled.height, 56);
  EXPECT_EQ(pooled.width, 29);
}

}  // namespace
}  // namespace stretto::nn
