// The operators on a GPU, in every type they take, against the reference in fp64 on the CPU.
#include "kernels/cuda/cuda.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

const at::Device kDevice = at::kCUDA;

using cases::lengths, cases::third;
using testing::expect_close;
using testing::Function, testing::Inputs, testing::Precision, testing::noise;

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::available()) GTEST_SKIP() << "no CUDA build, or no GPU that the driver offers";
  }
};

// Rounding of results and of what matrix products put in between; sums are fp32 everywhere.
const std::vector<Precision> kPrecisions = {{at::kFloat, 1e-4, 2e-5, 2e-5, kDevice},
                                            {at::kHalf, 4e-3, 4e-3, 4e-3, kDevice},
                                            {at::kBFloat16, 3e-2, 3e-2, 3e-2, kDevice}};

/// Value and gradients on the GPU against `reference` in fp64; `on_gpu` is told its device.
void expect_equal(const std::function<at::Tensor(const Inputs&, at::Device)>& on_gpu,
                  const Function& reference, const Inputs& inputs) {
  const auto fused = [&](const Inputs& in) { return on_gpu(in, kDevice); };
  for (const Precision& precision : kPrecisions)
    testing::expect_equal(fused, reference, inputs, precision);
}

TEST_F(CudaKernels, DropoutEqualsTheReference) {
  for (const int64_t width : {19, 64})
    expect_equal([](const Inputs& in, at::Device on) { return dropout(in[0], third(5, on)); },
                 [](const Inputs& in) { return reference::dropout(in[0], third(5, at::kCPU)); },
                 {noise({5, width})});
}

TEST_F(CudaKernels, DropoutAddEqualsTheReference) {
  for (const int64_t width : {19, 64})
    expect_equal(
        [](const Inputs& in, at::Device on) { return dropout_add(in[0], in[1], third(5, on)); },
        [](const Inputs& in) { return reference::dropout_add(in[0], in[1], third(5, at::kCPU)); },
        {noise({5, width}), noise({5, width})});
}

TEST_F(CudaKernels, BiasActivationDropoutEqualsTheReference) {
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh})
    for (const int64_t width : {33, 64})
      expect_equal(
          [&](const Inputs& in, at::Device on) {
            return bias_activation_dropout(in[0], in[1], activation, third(5, on));
          },
          [&](const Inputs& in) {
            return reference::bias_activation_dropout(in[0], in[1], activation, third(5, at::kCPU));
          },
          {noise({5, width}), noise({width})});
}

TEST_F(CudaKernels, SwigluEqualsTheReference) {
  for (const int64_t width : {34, 128})
    expect_equal(
        [](const Inputs& in, at::Device on) { return swiglu_dropout(in[0], third(4, on)); },
        [](const Inputs& in) { return reference::swiglu_dropout(in[0], third(4, at::kCPU)); },
        {noise({4, width})});
}

TEST_F(CudaKernels, GegluEqualsTheReference) {
  for (const int64_t width : {34, 128})
    expect_equal(
        [](const Inputs& in, at::Device on) { return geglu_dropout(in[0], third(4, on)); },
        [](const Inputs& in) { return reference::geglu_dropout(in[0], third(4, at::kCPU)); },
        {noise({4, width})});
}

TEST_F(CudaKernels, RmsNormEqualsTheReference) {
  for (const int64_t width : {19, 64})
    expect_equal([](const Inputs& in, at::Device) { return rms_norm(in[0], in[1]); },
                 [](const Inputs& in) { return reference::rms_norm(in[0], in[1]); },
                 {noise({5, width}), noise({width}, 8) + 1});
}

TEST_F(CudaKernels, SelfAttentionEqualsTheReference) {
  for (const bool causal : {false, true})
    for (const bool drop : {false, true})
      for (const int64_t d_model : {32, 20}) {
        const auto options = [&](at::Device on) {
          return SelfAttention{.offsets = lengths({0, 1, 1, 18, 58}, on),
                               .num_heads = 2,
                               .causal = causal,
                               .dropout = drop ? third(58, on) : Dropout{}};
        };
        expect_equal(
            [&](const Inputs& in, at::Device on) { return self_attention(in[0], options(on)); },
            [&](const Inputs& in) { return reference::self_attention(in[0], options(at::kCPU)); },
            {noise({58, 3 * d_model})});
      }
}

TEST_F(CudaKernels, SharedAndBiasedAttentionEqualsTheReference) {
  for (const bool causal : {false, true})
    for (const bool drop : {false, true})
      for (const bool has_bias : {false, true}) {
        const auto options = [&](const Inputs& in, at::Device on) {
          SelfAttention made{.offsets = lengths({0, 1, 1, 18, 58}, on),
                             .num_heads = 4,
                             .causal = causal,
                             .dropout = drop ? third(58, on) : Dropout{},
                             .num_kv_heads = 2};
          // Added in either case, so that both inputs have a gradient.
          if (has_bias) made.bias = {.table = in[1], .zero = 40};
          return made;
        };
        const auto sum = [](const Inputs& in) { return in[1].sum() * 0; };
        expect_equal(
            [&](const Inputs& in, at::Device on) {
              return self_attention(in[0], options(in, on)) + sum(in);
            },
            [&](const Inputs& in) {
              return reference::self_attention(in[0], options(in, at::kCPU)) + sum(in);
            },
            {noise({58, 8 * 16}), noise({4, 81}, 8) * 0.1});
      }
}

TEST_F(CudaKernels, DecodingWithSharedKeysAndABiasEqualsTheReference) {
  constexpr int64_t kLanes = 3, kSteps = 7, kHeads = 4, kWidth = 12, kShared = 2 * kWidth;
  for (const Precision& precision : kPrecisions) {
    const auto in_type = [&](const at::Tensor& x) { return x.to(precision.type); };
    const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
    const at::Tensor k_cache = in_type(noise({kSteps + 1, kLanes, kShared}));
    const at::Tensor v_cache = in_type(noise({kSteps + 1, kLanes, kShared}, 8));
    at::Tensor k_gpu = k_cache.to(kDevice), v_gpu = v_cache.to(kDevice);
    at::Tensor k_wide = wide(k_cache), v_wide = wide(v_cache);
    const at::Tensor lineage = (at::arange(kLanes * 9, at::kInt).view({kLanes, 9}) * 5) % kLanes;
    const at::Tensor q = in_type(noise({kLanes, kHeads * kWidth}));
    const at::Tensor k = in_type(noise({kLanes, kShared}, 9)), v = in_type(k.flip(0));
    const at::Tensor table = noise({kHeads, 12}, 10);
    const at::Tensor got =
        decode_self_attention(q.to(kDevice), k.to(kDevice), v.to(kDevice), k_gpu, v_gpu,
                              lineage.to(kDevice), kSteps, kHeads, {table.to(kDevice), 9});
    const at::Tensor want = reference::decode_self_attention(
        wide(q), wide(k), wide(v), k_wide, v_wide, lineage, kSteps, kHeads, {wide(table), 9});
    expect_close(got, want, precision, "output");
    expect_close(k_gpu, k_wide, {precision.type, 0, 0}, "cache of keys");
  }
}

TEST_F(CudaKernels, CrossAttentionEqualsTheReference) {
  for (const bool drop : {false, true}) {
    const auto options = [&](at::Device on) {
      return CrossAttention{.query_offsets = lengths({0, 1, 36}, on),
                            .key_offsets = lengths({0, 17, 26}, on),
                            .num_heads = 2,
                            .dropout = drop ? third(36, on) : Dropout{}};
    };
    expect_equal(
        [&](const Inputs& in, at::Device on) { return cross_attention(in[0], in[1], options(on)); },
        [&](const Inputs& in) {
          return reference::cross_attention(in[0], in[1], options(at::kCPU));
        },
        {noise({36, 32}), noise({26, 64})});
  }
}

TEST_F(CudaKernels, EmbeddingEqualsTheReferenceAndItsGradientRepeats) {
  const at::Tensor ids = at::arange(70, at::kLong).square() % 13;
  for (const int64_t width : {8, 21}) {
    expect_equal(
        [&](const Inputs& in, at::Device on) { return embed(in[0], ids.to(on), 3.0, in[1]); },
        [&](const Inputs& in) { return reference::embed(in[0], ids, 3.0, in[1]); },
        {noise({17, width}) * 0.3, noise({70, width})});
    const at::Tensor table = noise({17, width}).to(kDevice).requires_grad_(true);
    const auto slope = [&] {
      const at::Tensor out = embed(table, ids.to(kDevice), 3.0, {});
      return torch::autograd::grad({out}, {table}, {noise({70, width}).to(kDevice)})[0];
    };
    EXPECT_TRUE(at::equal(slope(), slope()));
  }
}

TEST_F(CudaKernels, LinearCrossEntropyEqualsTheReference) {
  const at::Tensor targets = at::arange(9, at::kLong) * 37;
  for (const double smoothing : {0.0, 0.3})
    expect_equal(
        [&](const Inputs& in, at::Device on) {
          return linear_cross_entropy(in[0], in[1], targets.to(on), smoothing, 301).loss_sum;
        },
        [&](const Inputs& in) {
          return reference::linear_cross_entropy(in[0], in[1], targets, smoothing, 301).loss_sum;
        },
        {noise({9, 16}) * 0.5, noise({304, 16})});
}

TEST_F(CudaKernels, LinearCrossEntropyWithABiasEqualsTheReference) {
  const at::Tensor targets = at::arange(9, at::kLong) * 37;
  expect_equal(
      [&](const Inputs& in, at::Device on) {
        return linear_cross_entropy(in[0], in[1], targets.to(on), 0.3, 301, in[2]).loss_sum;
      },
      [&](const Inputs& in) {
        return reference::linear_cross_entropy(in[0], in[1], targets, 0.3, 301, in[2]).loss_sum;
      },
      {noise({9, 16}) * 0.5, noise({304, 16}), noise({304}, 9)});
}

TEST_F(CudaKernels, CrossEntropyCountsTargetsWithTheLargestLogit) {
  const at::Tensor x = noise({90, 16}), weight = noise({304, 16}, 8);
  at::Tensor targets = at::matmul(x, weight.t()).slice(1, 0, 301).argmax(1);
  targets.slice(0, 0, 60).fill_(300);
  const auto right = [&](at::Device on) {
    return linear_cross_entropy(x.to(on), weight.to(on), targets.to(on), 0, 301)
        .right_sum.item<int64_t>();
  };
  EXPECT_EQ(right(kDevice), right(at::kCPU));
}

TEST_F(CudaKernels, LinearRDropEqualsTheReference) {
  const at::Tensor targets = at::arange(9, at::kLong) * 37;
  const RDrop options{.smoothing = 0.1, .alpha = 1, .num_classes = 301};
  expect_equal(
      [&](const Inputs& in, at::Device on) {
        return linear_r_drop(in[0], in[1], targets.to(on), options).loss_sum;
      },
      [&](const Inputs& in) {
        return reference::linear_r_drop(in[0], in[1], targets, options).loss_sum;
      },
      {noise({18, 16}) * 0.3, noise({304, 16}) * 0.5});
}

TEST_F(CudaKernels, LinearRDropWithABiasEqualsTheReference) {
  const at::Tensor targets = at::arange(9, at::kLong) * 37;
  const RDrop options{.smoothing = 0.1, .alpha = 1, .num_classes = 301};
  expect_equal(
      [&](const Inputs& in, at::Device on) {
        return linear_r_drop(in[0], in[1], targets.to(on), options, in[2]).loss_sum;
      },
      [&](const Inputs& in) {
        return reference::linear_r_drop(in[0], in[1], targets, options, in[2]).loss_sum;
      },
      {noise({18, 16}) * 0.3, noise({304, 16}) * 0.5, noise({304}, 9)});
}

TEST_F(CudaKernels, ATargetOutsideTheClassesGivesNaNAndNoFault) {
  const at::Tensor targets = at::tensor(std::vector<int64_t>{1, 99}, at::kLong).to(kDevice);
  const at::Tensor x = noise({2, 8}).to(kDevice), weight = noise({5, 8}).to(kDevice);
  EXPECT_TRUE(linear_cross_entropy(x, weight, targets, 0.1, 5).nll_sum.isnan().item<bool>());
}

TEST_F(CudaKernels, SumOfSquaresIsInDoubleAndRepeats) {
  for (const int64_t n : {0, 1, 70001}) {
    const at::Tensor flat = noise({n}).to(kDevice);
    const double want = flat.to(at::kCPU, at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(sum_of_squares(flat), want, 1e-12 * want);
    EXPECT_EQ(sum_of_squares(flat), sum_of_squares(flat));
  }
}

TEST_F(CudaKernels, DecodingFollowsTheLineage) {
  constexpr int64_t kLanes = 3, kSteps = 7, kModel = 24, kHeads = 2;
  for (const Precision& precision : kPrecisions) {
    const auto in_type = [&](const at::Tensor& x) { return x.to(precision.type); };
    at::Tensor k_cache = in_type(noise({kSteps + 1, kLanes, kModel}));
    at::Tensor v_cache = in_type(noise({kSteps + 1, kLanes, kModel}) * 0.5 + 1);
    at::Tensor k_gpu = k_cache.to(kDevice, precision.type, false, true);
    at::Tensor v_gpu = v_cache.to(kDevice, precision.type, false, true);
    at::Tensor k_wide = k_cache.to(at::kDouble), v_wide = v_cache.to(at::kDouble);
    const at::Tensor lineage = (at::arange(kLanes * 9, at::kInt).view({kLanes, 9}) * 5) % kLanes;
    const at::Tensor q = in_type(noise({kLanes, kModel}) * 2), k = in_type(q * 0.3 + 0.1);
    const at::Tensor v = in_type(q.flip(0));
    const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
    const at::Tensor got = decode_self_attention(q.to(kDevice), k.to(kDevice), v.to(kDevice), k_gpu,
                                                 v_gpu, lineage.to(kDevice), kSteps, kHeads);
    const at::Tensor want = reference::decode_self_attention(wide(q), wide(k), wide(v), k_wide,
                                                             v_wide, lineage, kSteps, kHeads);
    expect_close(got, want, precision, "output");
    expect_close(k_gpu, k_wide, {precision.type, 0, 0}, "cache of keys");
    expect_close(v_gpu, v_wide, {precision.type, 0, 0}, "cache of values");
  }
}

}  // namespace
}  // namespace stretto::kernels
