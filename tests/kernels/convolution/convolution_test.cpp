// Convolutions in time beside libtorch's, one sequence after the other, and what the list of cases
// (cases.h) cannot say: windows, masks, and what is refused.
#include "kernels/convolution/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "kernels/convolution/lines.h"
#include "kernels/convolution/reference.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using cases::lengths, cases::third;
using testing::Inputs, testing::noise;
using testing::OwnProducts, testing::Threads;

const std::vector<int> kBounds{0, 1, 1, 3, 20, 58, 119};

std::vector<TimeWindow> all_windows() {
  std::vector<TimeWindow> all;
  for (const Border border : {Border::kCentred, Border::kCausal})
    for (const int64_t kernel : {1, 2, 3, 7})
      for (const int64_t dilation : {1, 2})
        for (const int64_t stride : {1, 2, 3})
          all.push_back({.offsets = lengths(kBounds),
                         .kernel = kernel,
                         .border = border,
                         .dilation = dilation,
                         .stride = stride});
  return all;
}

std::string name_of(const TimeWindow& window) {
  return std::string(window.border == Border::kCausal ? "causal" : "centred") + " kernel " +
         std::to_string(window.kernel) + " dilation " + std::to_string(window.dilation) +
         " stride " + std::to_string(window.stride);
}

/// conv1d of libtorch on each sequence alone; weight [O, C / groups, K] as PyTorch has it.
at::Tensor conv1d_of_each(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          const TimeWindow& window, int64_t groups) {
  const int64_t reach = (window.kernel - 1) * window.dilation;
  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i + 1 < kBounds.size(); ++i) {
    if (kBounds[i] == kBounds[i + 1]) continue;
    const at::Tensor sequence = x.slice(0, kBounds[i], kBounds[i + 1]).t().unsqueeze(0);
    const at::Tensor padded = at::constant_pad_nd(sequence, {window.left(), reach - window.left()});
    outputs.push_back(at::conv1d(padded, weight, bias, window.stride, at::IntArrayRef{0},
                                 window.dilation, groups)[0]
                          .t());
  }
  return at::cat(outputs);
}

at::Tensor tap_major(const at::Tensor& weight) {
  return weight.permute({0, 2, 1}).reshape({weight.size(0), -1});
}

Inputs gradients(const at::Tensor& out, const Inputs& inputs) {
  return torch::autograd::grad({out}, inputs, {noise(out.sizes(), 3).to(out.scalar_type())});
}

void expect_near(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const double tolerance = got.scalar_type() == at::kDouble ? 1e-10 : 2e-4;
  EXPECT_TRUE(at::allclose(got, want, tolerance, tolerance))
      << what << ": off by " << (got - want).abs().max().item<double>();
}

TEST(TimeConvolution, EqualsConv1dOfEachSequence) {
  constexpr int64_t kChannels = 21, kOutputs = 34;
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const TimeWindow& window : all_windows()) {
      SCOPED_TRACE(name_of(window));
      const at::Tensor x = noise({kBounds.back(), kChannels}).to(type).requires_grad_(true);
      const at::Tensor weight =
          noise({kOutputs, kChannels, window.kernel}, 8).to(type).requires_grad_(true);
      const at::Tensor bias = noise({kOutputs}, 9).to(type).requires_grad_(true);
      const at::Tensor got = time_convolution(x, tap_major(weight), bias, window);
      const at::Tensor want = conv1d_of_each(x, weight, bias, window, 1);
      expect_near(got, want, "value");
      EXPECT_EQ(output_offsets(window).values[-1].item<int64_t>(), got.size(0));
      const Inputs a = gradients(got, {x, weight, bias}), b = gradients(want, {x, weight, bias});
      for (size_t i = 0; i < a.size(); ++i) expect_near(a[i], b[i], "gradient");
    }
}

TEST(TimeConvolution, DepthwiseEqualsConv1dWithAGroupForEachChannel) {
  constexpr int64_t kChannels = 85;
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const TimeWindow& window : all_windows()) {
      SCOPED_TRACE(name_of(window));
      const at::Tensor x = noise({kBounds.back(), kChannels}).to(type).requires_grad_(true);
      const at::Tensor weight = noise({kChannels, window.kernel}, 8).to(type).requires_grad_(true);
      const at::Tensor bias = noise({kChannels}, 9).to(type).requires_grad_(true);
      const at::Tensor got = depthwise_convolution(x, weight, bias, window);
      const at::Tensor want = conv1d_of_each(x, weight.unsqueeze(1), bias, window, kChannels);
      expect_near(got, want, "value");
      const Inputs a = gradients(got, {x, weight, bias}), b = gradients(want, {x, weight, bias});
      for (size_t i = 0; i < a.size(); ++i) expect_near(a[i], b[i], "gradient");
    }
}

TEST(TimeConvolution, LightEqualsDepthwiseWithTheFilterOfTheHead) {
  constexpr int64_t kHeads = 3, kHeadWidth = 19;
  for (const TimeWindow& window : all_windows()) {
    SCOPED_TRACE(name_of(window));
    const at::Tensor x = noise({kBounds.back(), kHeads * kHeadWidth}).requires_grad_(true);
    const at::Tensor weight = noise({kHeads, window.kernel}, 8).requires_grad_(true);
    const at::Tensor filters = at::softmax(weight, 1).repeat_interleave(kHeadWidth, 0);
    const at::Tensor got = light_convolution(x, weight, {}, window);
    const at::Tensor want =
        conv1d_of_each(x, filters.unsqueeze(1), {}, window, kHeads * kHeadWidth);
    expect_near(got, want, "value");
    const Inputs a = gradients(got, {x, weight}), b = gradients(want, {x, weight});
    for (size_t i = 0; i < a.size(); ++i) expect_near(a[i], b[i], "gradient");
  }
}

TEST(TimeConvolution, DynamicWithOneFilterForAllRowsIsLight) {
  const TimeWindow window{.offsets = lengths(kBounds), .kernel = 4, .border = Border::kCausal};
  const at::Tensor x = noise({kBounds.back(), 30}), weight = noise({2, 4}, 8);
  const at::Tensor weights = weight.view({1, 8}).repeat({kBounds.back(), 1});
  const Dropout drop = third(kBounds.back());
  for (const Dropout& each : {Dropout{}, drop})
    EXPECT_TRUE(at::equal(dynamic_convolution(x, weights, 2, each, window),
                          light_convolution(x, weight, each, window)));
}

TEST(TimeConvolution, TapsBeyondTheSequenceKeepTheirShareOfTheSoftmax) {
  // A single row sees itself through one tap of three equal ones.
  const TimeWindow window{.offsets = lengths({0, 1}), .kernel = 3};
  const at::Tensor x = at::full({1, 4}, 6.0f);
  EXPECT_TRUE(
      at::allclose(light_convolution(x, at::zeros({2, 3}), {}, window), at::full({1, 4}, 2.0f)));
  EXPECT_TRUE(at::allclose(dynamic_convolution(x, at::zeros({1, 6}), 2, {}, window),
                           at::full({1, 4}, 2.0f)));
}

TEST(TimeConvolution, TablesOfLinesEqualTheReferenceAndEachOther) {
  for (const TimeWindow& window : all_windows()) {
    SCOPED_TRACE(name_of(window));
    const at::Tensor in = input_lines(window), out = output_lines(window);
    const at::Tensor seen = reference::seen_rows(window, kBounds.back());
    EXPECT_TRUE(at::equal(at::where(seen.eq(kBounds.back()), -1, seen), in.to(at::kLong)));
    int64_t pairs = 0;
    for (int64_t row = 0; row < in.size(0); ++row)
      for (int64_t tap = 0; tap < window.kernel; ++tap) {
        const auto line = in[row][tap].item<int64_t>();
        if (line < 0) continue;
        ++pairs;
        EXPECT_EQ(out[line][tap].item<int64_t>(), row);
      }
    EXPECT_EQ(out.ge(0).sum().item<int64_t>(), pairs);
  }
}

TEST(TimeConvolution, StridesRoundLengthsUp) {
  const TimeWindow window{.offsets = lengths({0, 1, 1, 3, 8}), .kernel = 3, .stride = 2};
  const Offsets out = output_offsets(window);
  EXPECT_TRUE(at::equal(out.values, at::tensor({0, 1, 1, 2, 5}, at::kInt)));
  EXPECT_EQ(out.max_length, 20);
}

/// Every operator of one window, side by side.
at::Tensor everything(const at::Tensor& x, const TimeWindow& window, const at::Tensor& row_keys) {
  const int64_t rows = x.size(0), taps = window.kernel, heads = 2;
  const Dropout drop{.p = 0.3, .key = 77, .row_keys = row_keys};
  const at::Tensor weights = at::cat({x, x, x}, 1).slice(1, 0, heads * taps);
  return at::cat({time_convolution(x, noise({20, taps * 16}, 8), {}, window),
                  depthwise_convolution(x, noise({16, taps}, 8), {}, window),
                  light_convolution(x, noise({heads, taps}, 8), drop, window),
                  dynamic_convolution(x, weights, heads, drop, window), glu(x, {}, drop),
                  multi_step_attention(x, x * 0.3, x, {window.offsets, window.offsets})},
                 1)
      .view({rows, -1});
}

TEST(TimeConvolution, PackedSequencesEqualEachSequenceAlone) {
  const at::Tensor x = noise({119, 16}), keys = at::arange(119, at::kLong) * 31 + 5;
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    if (!gemm::takes_gathered()) continue;
    TimeWindow window{.offsets = lengths(kBounds), .kernel = 5, .dilation = 2};
    const at::Tensor together = everything(x, window, keys);
    for (size_t i = 0; i + 1 < kBounds.size(); ++i) {
      const int begin = kBounds[i], end = kBounds[i + 1];
      if (begin == end) continue;
      window.offsets = lengths({0, end - begin});
      EXPECT_TRUE(at::equal(together.slice(0, begin, end),
                            everything(x.slice(0, begin, end), window, keys.slice(0, begin, end))))
          << level->name << " sequence " << i;
    }
  }
}

TEST(TimeConvolution, DropConnectScalesWhatItKeeps) {
  const TimeWindow window{.offsets = lengths({0, 400}), .kernel = 1};
  const at::Tensor kept =
      light_convolution(at::ones({400, 64}), at::zeros({64, 1}), third(400), window);
  const at::Tensor on = kept.gt(0);
  EXPECT_NEAR(on.to(at::kDouble).mean().item<double>(), 0.7, 0.01);
  EXPECT_TRUE(at::allclose(kept.masked_select(on), at::full({1}, 1 / 0.7f), 1e-4));
}

TEST(TimeConvolution, ThreadsLeaveNoTraceInAnyBitOfAnyLevel) {
  const OwnProducts own;
  for (const cpu::Table* level : cpu::levels())
    for (const TimeWindow& window : cases::time_windows(lengths(kBounds)))
      for (const cases::Case& one : cases::convolutions(window, 69, 50, 3)) {
        SCOPED_TRACE(one.name + " at " + level->name + " " + name_of(window));
        const cpu::LevelGuard guard(*level);
        const auto results = [&](int threads) {
          const Threads count(threads);
          Inputs inputs;
          for (const at::Tensor& x : one.inputs) inputs.push_back(x.clone().requires_grad_(true));
          const at::Tensor out = one.run(inputs);
          Inputs all = gradients(out, inputs);
          all.push_back(out.detach());
          return all;
        };
        const Inputs alone = results(1);
        for (const int threads : {2, 5}) {
          const Inputs shared = results(threads);
          for (size_t i = 0; i < alone.size(); ++i)
            EXPECT_TRUE(at::equal(alone[i], shared[i])) << i;
        }
      }
}

TEST(TimeConvolution, WhatDoesNotFitIsRefused) {
  const at::Tensor x = noise({8, 6});
  const TimeWindow window{.offsets = lengths({0, 3, 8}), .kernel = 3};
  const auto with = [&](const auto& change) {
    TimeWindow other = window;
    change(other);
    return other;
  };
  EXPECT_THROW(time_convolution(x, noise({4, 17}), {}, window), c10::Error);
  EXPECT_THROW(time_convolution(x, noise({4, 18}), noise({5}), window), c10::Error);
  EXPECT_THROW(depthwise_convolution(x, noise({6, 4}), {}, window), c10::Error);
  EXPECT_THROW(light_convolution(x, noise({4, 3}), {}, window), c10::Error);
  EXPECT_THROW(light_convolution(x, noise({2, 3}), third(7), window), c10::Error);
  EXPECT_THROW(dynamic_convolution(x, noise({7, 6}), 2, {}, window), c10::Error);
  EXPECT_THROW(dynamic_convolution(x, noise({8, 5}), 2, {}, window), c10::Error);
  EXPECT_THROW(glu(noise({3, 5}), {}, {}), c10::Error);
  EXPECT_THROW(weight_norm(x, noise({6})), c10::Error);
  EXPECT_THROW(
      multi_step_attention(x, noise({8, 5}), noise({8, 5}), {window.offsets, window.offsets}),
      c10::Error);
  EXPECT_THROW(multi_step_attention(x, x, noise({7, 6}), {window.offsets, window.offsets}),
               c10::Error);
  for (const TimeWindow& wrong :
       {with([](TimeWindow& w) {
          w.offsets = lengths({0, 9});
        }),
        with([](TimeWindow& w) {
          w.offsets = lengths({0, 5, 3, 8});
        }),
        with([](TimeWindow& w) {
          w.offsets = lengths({1, 8});
        }),
        with([](TimeWindow& w) { w.dilation = 0; }), with([](TimeWindow& w) { w.stride = 0; })})
    EXPECT_THROW(time_convolution(x, noise({4, 18}), {}, wrong), c10::Error);
}

TEST(TimeConvolution, EmptyBatchesGiveEmptyResults) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor none = at::empty({0, 6}, type);
    const TimeWindow window{.offsets = lengths({0}), .kernel = 3};
    const auto some = [&](at::IntArrayRef shape) { return noise(shape).to(type); };
    const at::Tensor weight = some({4, 18}).requires_grad_(true);
    const at::Tensor out = time_convolution(none, weight, {}, window);
    EXPECT_EQ(out.sizes(), at::IntArrayRef({0, 4}));
    EXPECT_EQ(torch::autograd::grad({out.sum()}, {weight})[0].abs().max().item<double>(), 0.0);
    EXPECT_EQ(depthwise_convolution(none, some({6, 3}), {}, window).size(0), 0);
    EXPECT_EQ(light_convolution(none, some({2, 3}), {}, window).size(0), 0);
    EXPECT_EQ(dynamic_convolution(none, at::empty({0, 6}, type), 2, {}, window).size(0), 0);
    EXPECT_EQ(glu(none, {}, {}).sizes(), at::IntArrayRef({0, 3}));
    EXPECT_EQ(multi_step_attention(none, none, none, {window.offsets, window.offsets}).size(0), 0);
  }
}

}  // namespace
}  // namespace stretto::kernels
