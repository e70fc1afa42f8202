// The operators on a GPU, in every type they take, against the reference in fp64 on the CPU.
#include "kernels/cuda/cuda.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/table.h"
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

// The widths take teams of one to eight warps. Beyond 8192 the operator is libtorch's.
TEST_F(CudaKernels, LayerNormEqualsTheReference) {
  const auto compare = [](int64_t rows, int64_t width) {
    SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(width));
    expect_equal([](const Inputs& in, at::Device) { return layer_norm(in[0], in[1], in[2]); },
                 [&](const Inputs& in) { return at::layer_norm(in[0], {width}, in[1], in[2]); },
                 {noise({rows, width}) * 2 + 0.5, noise({width}, 8) + 1, noise({width}, 9)});
  };
  for (const int64_t width : {19, 64, 512, 1030, 2048})
    for (const int64_t rows : {1, 5, 300}) compare(rows, width);
  compare(2500, 64);  // more rows in a part than a block has warps
  for (const int64_t width : {1, 1024, 4096, 8191, 8200}) compare(5, width);
}

TEST_F(CudaKernels, LayerNormOfALargeMeanKeepsTheVariance) {
  for (const int64_t width : {64, 2048}) {
    const at::Tensor x = noise({9, width}) + 1000, gain = at::ones({width}), none = gain * 0;
    const at::Tensor got = layer_norm(x.to(kDevice), gain.to(kDevice), none.to(kDevice));
    const at::Tensor want = at::layer_norm(x.to(at::kDouble), {width});
    expect_close(got, want, {at::kFloat, 1e-3, 1e-3}, "value");
  }
}

TEST_F(CudaKernels, LayerNormRepeatsItsBitsWhereverTheTensorsLie) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const int64_t width : {19, 512, 1024, 4096}) {
      const auto leaf = [&](at::IntArrayRef sizes, uint64_t seed, int64_t shift) {
        const at::Tensor from = noise(sizes, seed);
        const at::Tensor room = at::empty({from.numel() + shift}, at::device(kDevice).dtype(type));
        return room.slice(0, shift).view(sizes).copy_(from).detach().requires_grad_(true);
      };
      const auto all = [&](int64_t shift) {
        const Inputs in = {leaf({300, width}, 7, shift), leaf({width}, 8, shift),
                           leaf({width}, 9, shift)};
        const at::Tensor out = layer_norm(in[0], in[1], in[2]);
        Inputs made = torch::autograd::grad({out}, in, {leaf({300, width}, 10, shift).detach()});
        made.push_back(out.detach());
        return made;
      };
      const Inputs first = all(0), second = all(0), shifted = all(1);
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(at::equal(first[i], second[i])) << i << " of width " << width;
        EXPECT_TRUE(at::equal(first[i], shifted[i])) << i << " of width " << width;
      }
    }
}

TEST_F(CudaKernels, LayerNormGivesTheGradientsThatAreWanted) {
  const auto slopes = [](const std::vector<size_t>& wanted) {
    Inputs in = {noise({37, 64}).to(kDevice), noise({64}, 8).to(kDevice),
                 noise({64}, 9).to(kDevice)};
    Inputs leaves;
    for (const size_t i : wanted) leaves.push_back(in[i].requires_grad_(true));
    const at::Tensor out = layer_norm(in[0], in[1], in[2]);
    return torch::autograd::grad({out}, leaves, {noise({37, 64}, 10).to(kDevice)});
  };
  const Inputs all = slopes({0, 1, 2});
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(at::equal(slopes({i})[0], all[i])) << i;
}

TEST_F(CudaKernels, LayerNormOfNoRowsHasGradientsOfZero) {
  const auto leaf = [](const at::Tensor& x) { return x.to(kDevice).requires_grad_(true); };
  const Inputs in = {leaf(noise({0, 64})), leaf(noise({64}, 8)), leaf(noise({64}, 9))};
  const Inputs slopes = torch::autograd::grad({layer_norm(in[0], in[1], in[2]).sum()}, in);
  EXPECT_EQ(slopes[0].sizes(), in[0].sizes());
  EXPECT_TRUE(at::equal(slopes[1], at::zeros_like(slopes[1])));
  EXPECT_TRUE(at::equal(slopes[2], at::zeros_like(slopes[2])));
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

/// Bounds of packed rows, with the longest sequence unknown.
Offsets packed(const std::vector<int>& bounds, at::Device device) {
  return {.values = at::tensor(bounds, at::kInt).to(device)};
}

// The lengths take each team of threads: parts of a warp, a warp, a block.
TEST_F(CudaKernels, DroppedSelfAttentionOfAnyLengthEqualsTheReference) {
  const std::vector<std::vector<int>> batches = {
      {0, 1, 2, 3}, {0, 1, 1, 18, 58}, {0, 100, 101},  {0, 0, 200, 203},
      {0, 7, 307},  {0, 1000, 1000},   {0, 1100, 1103}};
  for (const bool causal : {false, true})
    for (const std::vector<int>& bounds : batches) {
      const int64_t rows = bounds.back();
      SCOPED_TRACE(std::to_string(rows) + (causal ? " rows, causal" : " rows"));
      const auto options = [&](at::Device on) {
        return SelfAttention{.offsets = packed(bounds, on),
                             .num_heads = 2,
                             .causal = causal,
                             .dropout = third(rows, on)};
      };
      expect_equal(
          [&](const Inputs& in, at::Device on) { return self_attention(in[0], options(on)); },
          [&](const Inputs& in) { return reference::self_attention(in[0], options(at::kCPU)); },
          {noise({rows, 3 * 16})});
    }
}

TEST_F(CudaKernels, DroppedCrossAttentionOfAnyLengthEqualsTheReference) {
  const std::vector<int> queries = {0, 1, 1, 12, 15};
  for (const std::vector<int>& keys : std::vector<std::vector<int>>{
           {0, 1, 2, 4, 5}, {0, 17, 20, 110, 111}, {0, 2500, 2501, 2502, 2600}}) {
    const int64_t rows = queries.back(), memory = keys.back();
    SCOPED_TRACE(memory);
    const auto options = [&](at::Device on) {
      return CrossAttention{.query_offsets = packed(queries, on),
                            .key_offsets = packed(keys, on),
                            .num_heads = 2,
                            .dropout = third(rows, on)};
    };
    expect_equal(
        [&](const Inputs& in, at::Device on) { return cross_attention(in[0], in[1], options(on)); },
        [&](const Inputs& in) {
          return reference::cross_attention(in[0], in[1], options(at::kCPU));
        },
        {noise({rows, 16}), noise({memory, 32})});
  }
}

TEST_F(CudaKernels, DroppedAttentionRepeatsItsBits) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const std::vector<int>& bounds :
         std::vector<std::vector<int>>{{0, 1, 1, 18, 58}, {0, 1100, 1103}}) {
      const int64_t rows = bounds.back();
      const auto all = [&] {
        const at::Tensor qkv = noise({rows, 3 * 16}).to(kDevice, type).requires_grad_(true);
        const at::Tensor out = self_attention(qkv, {.offsets = packed(bounds, kDevice),
                                                    .num_heads = 2,
                                                    .causal = true,
                                                    .dropout = third(rows, kDevice)});
        const at::Tensor slope = noise({rows, 16}, 8).to(kDevice, type);
        return Inputs{out.detach(), torch::autograd::grad({out}, {qkv}, {slope})[0]};
      };
      const Inputs first = all(), second = all();
      EXPECT_TRUE(at::equal(first[0], second[0])) << type << ' ' << rows;
      EXPECT_TRUE(at::equal(first[1], second[1])) << type << ' ' << rows;
    }
}

TEST_F(CudaKernels, AttentionOfManyKeysRepeatsItsBits) {
  // Gradients of queries are sums over blocks of keys; few heads, so that blocks are spread.
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const bool causal : {false, true}) {
      const std::vector<int> bounds{0, 1500, 1503, 2400};
      const auto slopes = [&] {
        const at::Tensor qkv = noise({2400, 3 * 128}).to(kDevice, type).requires_grad_(true);
        const at::Tensor out = self_attention(
            qkv, {.offsets = packed(bounds, kDevice), .num_heads = 2, .causal = causal});
        return torch::autograd::grad({out}, {qkv}, {noise({2400, 128}, 8).to(kDevice, type)})[0];
      };
      const at::Tensor first = slopes();
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(first, slopes())) << type << ' ' << causal;
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
  const at::Tensor later = at::tensor({0, 4, 7}, at::kInt);  // where histories begin
  for (const at::Tensor& first : {at::Tensor(), later})
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
      const at::Tensor got = decode_self_attention(
          q.to(kDevice), k.to(kDevice), v.to(kDevice), k_gpu, v_gpu, lineage.to(kDevice), kSteps,
          kHeads, {table.to(kDevice), 9}, first.defined() ? first.to(kDevice) : first);
      const at::Tensor want =
          reference::decode_self_attention(wide(q), wide(k), wide(v), k_wide, v_wide, lineage,
                                           kSteps, kHeads, {wide(table), 9}, first);
      expect_close(got, want, precision, "output");
      expect_close(k_gpu, k_wide, {precision.type, 0, 0}, "cache of keys");
    }
}

TEST_F(CudaKernels, CrossAttentionEqualsTheReference) {
  for (const bool drop : {false, true}) {
    // No sequence is as long as the bound that these lengths carry.
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

TEST_F(CudaKernels, RowsOfAHalfTypeStandBesideNumbersInFp32) {
  const at::Tensor rows = noise({5, 64}), beside = noise({5, 64}), shift = noise({64});
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const at::Tensor x = rows.to(kDevice, type).requires_grad_(true);
    const at::Tensor exact = x.detach().to(at::kCPU, at::kDouble).requires_grad_(true);
    const double unit = type == at::kHalf ? 1e-3 : 8e-3;
    const auto compare = [&](const at::Tensor& got, const at::Tensor& want, double tolerance) {
      const at::Tensor dy = noise({5, 64});
      EXPECT_TRUE(
          at::allclose(got.detach().cpu().to(at::kDouble), want.detach(), tolerance, tolerance));
      const at::Tensor slope =
          torch::autograd::grad({got}, {x}, {dy.to(kDevice, got.scalar_type())})[0];
      EXPECT_EQ(slope.scalar_type(), type);
      const at::Tensor exact_slope =
          torch::autograd::grad({want}, {exact}, {dy.to(at::kDouble)})[0];
      EXPECT_TRUE(at::allclose(slope.cpu().to(at::kDouble), exact_slope, 2 * unit, 2 * unit));
    };
    const at::Tensor sum = dropout_add(x, beside.to(kDevice, at::kFloat), third(5, kDevice));
    EXPECT_EQ(sum.scalar_type(), at::kFloat);
    compare(sum, reference::dropout_add(exact, beside.to(at::kDouble), third(5, at::kCPU)), 1e-5);
    for (const Activation activation :
         {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
      const at::Tensor bias = shift.to(kDevice, at::kFloat).requires_grad_(true);
      const at::Tensor got = bias_activation_dropout(x, bias, activation, third(5, kDevice));
      EXPECT_EQ(got.scalar_type(), type);
      const at::Tensor of_bias =
          torch::autograd::grad({got.sum()}, {bias}, {}, /*retain_graph=*/true)[0];
      EXPECT_EQ(of_bias.scalar_type(), at::kFloat);
      compare(got,
              reference::bias_activation_dropout(exact, shift.to(at::kDouble), activation,
                                                 third(5, at::kCPU)),
              unit);
    }
  }
}

TEST_F(CudaKernels, ColumnSumsAreThoseOfFp64AndRepeat) {
  const auto column_sums = cuda::table().column_sums;  // null where this test is skipped
  for (const int64_t rows : {0, 1, 5, 300, 20000})
    for (const int64_t width : {1, 19, 512, 1030})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor x = noise({rows, width}).to(kDevice, type);
        const at::Tensor sums = column_sums(x);
        EXPECT_EQ(sums.scalar_type(), at::kFloat);
        EXPECT_TRUE(at::allclose(sums.to(at::kDouble), x.to(at::kDouble).sum(0), 1e-4, 1e-3))
            << rows << " x " << width;
        EXPECT_TRUE(at::equal(sums, column_sums(x)));
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
