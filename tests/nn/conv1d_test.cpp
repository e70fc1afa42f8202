#include "nn/conv1d.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "nn/packed_conv2d.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using stretto::testing::noise;

Init conv1d_place() {
  return Init(5, at::kCPU).child("layer");
}

/// Sequences of 4, no and 9 rows.
kernels::Offsets offsets_of_three() {
  return {.values = at::tensor({0, 4, 4, 13}, at::kInt), .max_length = 9};
}

/// A norm whose numbers are not those of a new one.
BatchNorm used_norm(int64_t channels) {
  BatchNorm norm(conv1d_place(), channels);
  const at::NoGradGuard no_grad;
  norm->weight.add_(0.3 * noise({channels}, 1));
  norm->bias.add_(noise({channels}, 2));
  norm->running_mean.add_(noise({channels}, 3));
  norm->running_var.add_(noise({channels}, 4).abs());
  return norm;
}

at::Tensor plain_norm_of(const BatchNorm& norm, const at::Tensor& x, bool training) {
  return at::batch_norm(x, norm->weight, norm->bias, norm->running_mean.clone(),
                        norm->running_var.clone(), training, 0.1, 1e-5, false);
}

TEST(Conv1d, IsTheKernelOfItsForm) {
  const at::Tensor x = noise({13, 6});
  const kernels::Offsets offsets = offsets_of_three();
  const Conv1d conv(conv1d_place(), 6, 4,
                    Conv1dOptions{.kernel = 3, .stride = 2, .dilation = 2, .bias = true});
  EXPECT_EQ(conv->weight.sizes(), (std::vector<int64_t>{4, 18}));
  const at::Tensor strided = kernels::time_convolution(
      x, conv->weight, conv->bias, {.offsets = offsets, .kernel = 3, .dilation = 2, .stride = 2});
  EXPECT_TRUE(at::equal(conv->forward(x, offsets), strided));
  EXPECT_EQ(strided.size(0), 2 + 5);

  const Conv1d depthwise(conv1d_place(), 6, 6, Conv1dOptions{.kernel = 3, .depthwise = true});
  EXPECT_EQ(depthwise->weight.sizes(), (std::vector<int64_t>{6, 3}));
  EXPECT_TRUE(at::equal(
      depthwise->forward(x, offsets),
      kernels::depthwise_convolution(x, depthwise->weight, {}, {.offsets = offsets, .kernel = 3})));

  const Conv1d map(conv1d_place(), 6, 4);
  EXPECT_FALSE(map->bias.defined());
  EXPECT_TRUE(at::allclose(map->forward(x, offsets), at::matmul(x, map->weight.t()), 1e-5, 1e-5));
  EXPECT_THROW(Conv1d(conv1d_place(), 6, 4, Conv1dOptions{.depthwise = true}), c10::Error);
}

TEST(Conv1d, SeesItsGroupAlone) {
  const at::Tensor x = noise({13, 6});
  const kernels::Offsets offsets = offsets_of_three();
  const Conv1d conv(conv1d_place(), 6, 4, Conv1dOptions{.kernel = 3, .groups = 2, .bias = true});
  EXPECT_EQ(conv->weight.sizes(), (std::vector<int64_t>{4, 9}));
  const at::Tensor y = conv->forward(x, offsets);
  for (int64_t o = 0; o < 4; ++o) {
    const at::Tensor own = kernels::time_convolution(
        x.narrow(1, o % 2 * 3, 3).contiguous(), conv->weight.narrow(0, o, 1),
        conv->bias.narrow(0, o, 1), {.offsets = offsets, .kernel = 3});
    EXPECT_TRUE(at::allclose(y.select(1, o), own.squeeze(1), 1e-5, 1e-6)) << o;
  }
  EXPECT_THROW(Conv1d(conv1d_place(), 6, 4, Conv1dOptions{.groups = 3}), c10::Error);
  EXPECT_THROW(Conv1d(conv1d_place(), 6, 6, Conv1dOptions{.depthwise = true, .groups = 2}),
               c10::Error);
}

TEST(Conv1d, StartsWithTheVarianceOfItsTaps) {
  const Conv1d conv(conv1d_place(), 40, 60, Conv1dOptions{.kernel = 5});
  EXPECT_NEAR(conv->weight.std().item<double>(), std::sqrt(2.0 / (5 * 100)), 2e-3);
  const Conv1d depthwise(conv1d_place(), 400, 400, Conv1dOptions{.kernel = 9, .depthwise = true});
  EXPECT_NEAR(depthwise->weight.std().item<double>(), 1.0 / 3, 2e-2);
}

TEST(NormedRows, AreNormedOverRowsAndColumns) {
  for (const bool training : {true, false}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      BatchNorm norm = used_norm(3);
      norm->to(type);
      norm->train(training);
      const at::Tensor x = noise({11, 4 * 3}, 7).to(type), residual = noise({11, 12}, 8).to(type);
      const at::Tensor want =
          plain_norm_of(norm, x.view({44, 3}), training).view({11, 12}) + residual;
      const at::Tensor got =
          normed_rows(x, norm, {.end = kernels::PlaneEnd::kRelu, .residual = residual});
      EXPECT_TRUE(at::allclose(got, want.relu(), 1e-5, 1e-5)) << training;
    }
  }
  EXPECT_THROW(normed_rows(noise({11, 10}), used_norm(3)), c10::Error);
}

TEST(ConvolvedRows, HoldTheNormInTheirFiltersInEvaluation) {
  const kernels::Offsets offsets = offsets_of_three();
  Conv1d conv(conv1d_place(), 6, 4, Conv1dOptions{.kernel = 3, .bias = true});
  const PackedConv2d planes(conv1d_place(), 2, 4,
                            PackedConv2dOptions{.time_kernel = 3, .column_kernel = 2});
  BatchNorm norm = used_norm(4);
  {
    const at::NoGradGuard no_grad;
    conv->bias.add_(noise({4}, 9));
  }
  norm->eval();
  const at::Tensor x = noise({13, 6}), residual = noise({13, 4}, 8);
  const NormEnd end{.end = kernels::PlaneEnd::kRelu, .residual = residual};
  const at::Tensor want = convolved_rows(x, offsets, conv, norm, end).detach();
  const at::Tensor want_planes =
      convolved_rows(x, offsets, planes, norm, kernels::PlaneEnd::kRelu).detach();
  EXPECT_TRUE(at::allclose(
      want, (plain_norm_of(norm, conv->forward(x, offsets), false) + residual).relu(), 1e-5, 1e-5));
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(convolved_rows(x, offsets, conv, norm, end), want, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(convolved_rows(x, offsets, planes, norm, kernels::PlaneEnd::kRelu),
                           want_planes, 1e-5, 1e-5));
  kernels::PackedWeights kept;
  const kernels::PackedWeightsScope scope(kept);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_TRUE(at::allclose(convolved_rows(x, offsets, conv, norm, end), want, 1e-5, 1e-5));
  }
}

TEST(PackedConv2d, HasTheWeightsOfPytorchAndCountsItsProducts) {
  const PackedConv2d conv(
      conv1d_place(), 2, 30,
      PackedConv2dOptions{
          .time_kernel = 5, .column_kernel = 8, .time_stride = 2, .column_stride = 3});
  EXPECT_EQ(conv->weight.sizes(), (std::vector<int64_t>{30, 2, 5, 8}));
  EXPECT_NEAR(conv->weight.std().item<double>(), std::sqrt(2.0 / (40 * 32)), 2e-3);
  EXPECT_EQ(conv->columns_out(10), 4);
  EXPECT_DOUBLE_EQ(conv->operations(10), 2.0 * 30 * 2 * 40 * 4);
  EXPECT_EQ(conv->forward(noise({13, 20}), offsets_of_three()).sizes(),
            (std::vector<int64_t>{2 + 5, 4 * 30}));
}

}  // namespace
}  // namespace stretto::nn
