// What ConvS2S has besides convolutions: gates, weight norm, its attention, scaled gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "kernels/compute.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/reference.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using cases::lengths;
using testing::Inputs, testing::noise;

TEST(Gates, GatesAndNormsAreNeverRounded) {
  const at::Tensor x = noise({9, 26}), bias = noise({26}, 8), gain = noise({9}, 9);
  const at::Tensor gated = glu(x, bias, {}), normed = weight_norm(x, gain);
  const ComputeScope scope(Compute::kBf16);
  EXPECT_TRUE(at::equal(glu(x, bias, {}), gated));
  EXPECT_TRUE(at::equal(weight_norm(x, gain), normed));
}

TEST(WeightNorm, EqualsLibtorchs) {
  const at::Tensor v = noise({7, 300}), gain = noise({7}, 8);
  const at::Tensor got = weight_norm(v, gain);
  EXPECT_TRUE(at::allclose(got, at::_weight_norm(v, gain.unsqueeze(1), 0), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(got.norm(2, 1), gain.abs(), 1e-5, 1e-6));
}

TEST(ScaleGradient, IsTheIdentityForwardAndAFactorBackward) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor x = noise({5, 4}).to(type).requires_grad_(true);
    const at::Tensor y = scale_gradient(x, 0.125);
    EXPECT_TRUE(at::equal(x, y));
    const at::Tensor dy = noise({5, 4}, 8).to(type);
    EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {dy})[0], dy * 0.125));
  }
}

TEST(MultiStepAttention, IsTheMeanTimesTheRootOfTheLengthWhereScoresAreEqual) {
  const MultiStepAttention options{.query_offsets = lengths({0, 2, 3}),
                                   .key_offsets = lengths({0, 9, 13})};
  const at::Tensor values = noise({13, 6});
  const at::Tensor got =
      multi_step_attention(at::zeros({3, 6}), noise({13, 6}, 8), values, options);
  EXPECT_TRUE(at::allclose(got[0], values.slice(0, 0, 9).mean(0) * 3, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(got[2], values.slice(0, 9, 13).mean(0) * 2, 1e-4, 1e-5));
}

TEST(MultiStepAttention, IsCrossAttentionWithoutItsScaleAndWithAFactor) {
  constexpr int64_t kWidth = 16;
  const Offsets queries = lengths({0, 3, 36}), keys = lengths({0, 20, 29});
  const at::Tensor q = noise({36, kWidth}), kv = noise({29, 2 * kWidth}, 8);
  const auto part = kv.chunk(2, 1);
  const MultiStepAttention options{queries, keys};
  const CrossAttention cross{.query_offsets = queries, .key_offsets = keys, .dropout = {}};
  at::Tensor factor = at::full({36, 1}, 3.0f);
  factor.slice(0, 0, 3).fill_(std::sqrt(20.0f));
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    EXPECT_TRUE(at::allclose(multi_step_attention(q / 4, part[0], part[1], options),
                             cross_attention(q, kv, cross) * factor, 1e-4, 1e-5))
        << level->name;
    EXPECT_TRUE(at::allclose(multi_step_attention_weights(q / 4, part[0], options),
                             cross_attention_weights(q, kv, cross), 1e-4, 1e-6))
        << level->name;
    EXPECT_TRUE(at::allclose(multi_step_attention_weights(q, part[0], options),
                             reference::multi_step_attention_weights(q, part[0], options), 1e-4,
                             1e-6))
        << level->name;
  }
}

TEST(MultiStepAttention, SequencesWithoutKeysOrQueriesGiveZeroes) {
  const MultiStepAttention options{.query_offsets = lengths({0, 2, 2, 5}),
                                   .key_offsets = lengths({0, 0, 4, 6})};
  for (const cpu::Table* level : cpu::levels())
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const cpu::LevelGuard guard(*level);
      const at::Tensor q = noise({5, 7}).to(type).requires_grad_(true);
      const at::Tensor keys = noise({6, 7}, 8).to(type).requires_grad_(true);
      const at::Tensor values = noise({6, 7}, 9).to(type).requires_grad_(true);
      const at::Tensor out = multi_step_attention(q, keys, values, options);
      EXPECT_TRUE(at::equal(out.slice(0, 0, 2), at::zeros({2, 7}, type))) << level->name;
      const Inputs slopes = torch::autograd::grad({out}, {q, keys, values}, {at::ones_like(out)});
      EXPECT_TRUE(at::equal(slopes[0].slice(0, 0, 2), at::zeros({2, 7}, type))) << level->name;
      for (const size_t i : {1, 2})
        EXPECT_TRUE(at::equal(slopes[i].slice(0, 0, 4), at::zeros({4, 7}, type))) << i;
      EXPECT_EQ(multi_step_attention_weights(q, keys, options).size(0), 6);
    }
}

}  // namespace
}  // namespace stretto::kernels
