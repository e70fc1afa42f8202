#include "kernels/norm/plane_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/table.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::kernels {
namespace {

using testing::Function, testing::Inputs, testing::noise;

constexpr PlaneEnd kEnds[] = {PlaneEnd::kNone, PlaneEnd::kRelu, PlaneEnd::kGelu};

at::Tensor bent(const at::Tensor& z, PlaneEnd end) {
  if (end == PlaneEnd::kRelu) return z.relu();
  return end == PlaneEnd::kGelu ? at::gelu(z) : z;
}

/// x, weight, bias, and a residual if there is one.
Function fused_norm(PlaneEnd end) {
  return [end](const Inputs& in) {
    PlaneMoments moments;
    return plane_norm(
        in[0], in[1], in[2],
        {.epsilon = 1e-3, .end = end, .residual = in.size() > 3 ? in[3] : at::Tensor()}, moments);
  };
}

Function plain_norm(PlaneEnd end) {
  return [end](const Inputs& in) {
    const at::Tensor normed =
        at::batch_norm(in[0], in[1], in[2], {}, {}, /*training=*/true, 0.1, 1e-3, false);
    return bent(in.size() > 3 ? normed + in[3] : normed, end);
  };
}

Inputs inputs_of(int64_t channels, bool adds, int64_t size = 5) {
  Inputs in{noise({3, channels, size, size + 1}, 1) + 0.5, noise({channels}, 2),
            noise({channels}, 3)};
  if (adds) in.push_back(noise(in[0].sizes(), 4));
  for (at::Tensor& x : in) {
    if (x.dim() == 4) x = x.contiguous(at::MemoryFormat::ChannelsLast);
  }
  return in;
}

TEST(PlaneNorm, EqualsLibtorchsOperatorsAtEveryLevel) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    for (const PlaneEnd end : kEnds) {
      for (const int64_t channels : {1, 7, 16, 37}) {
        for (const bool adds : {false, true}) {
          SCOPED_TRACE(std::string(level->name) + " end " + std::to_string(int(end)) + ", " +
                       std::to_string(channels) + " channels" + (adds ? ", residual" : ""));
          testing::expect_equal(fused_norm(end), plain_norm(end), inputs_of(channels, adds));
        }
      }
    }
  }
}

TEST(PlaneNorm, HasTheGradientsOfItsValuesInDouble) {
  for (const PlaneEnd end : {PlaneEnd::kNone, PlaneEnd::kGelu}) {
    testing::expect_gradients(fused_norm(end), inputs_of(3, true, 2));
  }
}

TEST(PlaneNorm, TakesPlanesInAnyLayout) {
  Inputs in = inputs_of(8, true);
  const at::Tensor want = fused_norm(PlaneEnd::kRelu)(in);
  EXPECT_TRUE(want.is_contiguous(at::MemoryFormat::ChannelsLast));
  for (at::Tensor& x : in) x = x.contiguous();
  EXPECT_TRUE(at::equal(fused_norm(PlaneEnd::kRelu)(in), want));
}

TEST(PlaneNorm, StoresTheMomentsOfManyBlocksOfRows) {
  // More rows than a block has, and a mean that is large beside the deviation.
  const at::Tensor x = (noise({40, 20, 9, 10}, 1) + 300).to(at::kFloat);
  PlaneMoments moments;
  const at::Tensor y = plane_norm(x, at::ones(20), at::zeros(20), {}, moments);
  const auto [var, mean] = at::var_mean(x.to(at::kDouble), {0, 2, 3}, /*correction=*/1);
  EXPECT_TRUE(at::allclose(moments.mean.to(at::kDouble), mean, 1e-6, 0));
  EXPECT_TRUE(at::allclose(moments.var.to(at::kDouble), var, 1e-4, 0));
  EXPECT_LT(y.mean({0, 2, 3}).abs().max().item<double>(), 2e-4);
}

TEST(PlaneNorm, HasTheSameBitsForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const auto bits = [&](int threads) {
    at::set_num_threads(threads);
    Inputs in = inputs_of(24, true, 40);
    for (at::Tensor& x : in) x.requires_grad_(true);
    const at::Tensor y = fused_norm(PlaneEnd::kGelu)(in);
    Inputs all = torch::autograd::grad({y}, in, {noise(y.sizes(), 9)});
    all.push_back(y.detach());
    return all;
  };
  const Inputs one = bits(1), three = bits(3);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST(PlaneNorm, NeedsNoGradientOfPlanes) {
  Inputs in = inputs_of(6, true);
  for (size_t i = 1; i < 3; ++i) in[i].requires_grad_(true);
  const at::Tensor y = fused_norm(PlaneEnd::kRelu)(in);
  const auto got = torch::autograd::grad({y}, {in[1], in[2]}, {noise(y.sizes(), 9)});
  in[0].requires_grad_(true);
  const at::Tensor again = fused_norm(PlaneEnd::kRelu)(in);
  const auto want = torch::autograd::grad({again}, {in[1], in[2]}, {noise(y.sizes(), 9)});
  EXPECT_TRUE(at::equal(got[0], want[0]) && at::equal(got[1], want[1]));
}

TEST(PlaneNorm, RefusesShapesThatDoNotFit) {
  PlaneMoments moments;
  const auto norm = [&](const at::Tensor& x, const at::Tensor& weight) {
    return plane_norm(x, weight, weight, {}, moments);
  };
  EXPECT_THROW(norm(noise({2, 3, 4}), at::ones(3)), c10::Error);
  EXPECT_THROW(norm(noise({2, 3, 4, 4}), at::ones(4)), c10::Error);
  EXPECT_THROW(norm(noise({1, 3, 1, 1}), at::ones(3)), c10::Error);
  EXPECT_THROW(plane_norm(noise({2, 3, 4, 4}), at::ones(3), at::ones(3),
                          {.residual = noise({2, 3, 4, 5})}, moments),
               c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
