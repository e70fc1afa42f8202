// Convolutions with fewer products than taps times outputs, beside plain sums.
#include "kernels/convolution/filtering.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/convolution/reference.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::Inputs, testing::noise, testing::OwnProducts;

constexpr int64_t kIn = 45, kOut = 70;

/// The value and the gradients of time_convolution, or of the reference in double.
Inputs results(const Inputs& inputs, const TimeWindow& window, bool plain) {
  Inputs leaves;
  for (const at::Tensor& x : inputs)
    leaves.push_back((plain ? x.to(at::kDouble) : x.clone()).requires_grad_(true));
  const at::Tensor out = plain
                             ? reference::time_convolution(leaves[0], leaves[1], leaves[2], window)
                             : time_convolution(leaves[0], leaves[1], leaves[2], window);
  Inputs all = torch::autograd::grad({out}, leaves, {noise(out.sizes(), 3).to(out.scalar_type())});
  all.push_back(out.detach());
  return all;
}

double root_mean_square(const at::Tensor& x) {
  return x.to(at::kDouble).square().mean().sqrt().item<double>();
}

TEST(Filtering, EqualsPlainSumsForEveryNumberOfTaps) {
  const OwnProducts own;
  const Offsets offsets = cases::lengths({0, 1, 1, 3, 20, 58, 119});
  for (const cpu::Table* level : cpu::levels())
    for (const Border border : {Border::kCentred, Border::kCausal})
      for (int64_t kernel = 3; kernel <= 13; ++kernel)
        for (const int64_t dilation : {1, 2, 5}) {
          const TimeWindow window{
              .offsets = offsets, .kernel = kernel, .border = border, .dilation = dilation};
          SCOPED_TRACE(std::string(level->name) + " kernel " + std::to_string(kernel) +
                       " dilation " + std::to_string(dilation));
          const cpu::LevelGuard guard(*level);
          ASSERT_TRUE(is_filtered(window, kIn, kOut, Compute::kFp32));
          const Inputs inputs{noise({119, kIn}), noise({kOut, kernel * kIn}, 8) * 0.1,
                              noise({kOut}, 9)};
          const Inputs got = results(inputs, window, false), want = results(inputs, window, true);
          for (size_t i = 0; i < got.size(); ++i)
            EXPECT_TRUE(at::allclose(got[i].to(at::kDouble), want[i], 1e-4, 1e-4))
                << i << ": off by " << (got[i] - want[i]).abs().max().item<double>();
          if (level == cpu::levels().front() && dilation == 1 && border == Border::kCentred) {
            const at::NoGradGuard no_grad;
            EXPECT_TRUE(
                at::equal(time_convolution(inputs[0], inputs[1], inputs[2], window), got.back()));
          }
        }
}

TEST(Filtering, IsHardlyLessExactThanPlainProducts) {
  const OwnProducts own;
  constexpr int64_t kWidth = 512, kRows = 400;
  for (const int64_t kernel : {3, 4, 5, 7}) {
    const TimeWindow window{.offsets = cases::lengths({0, kRows}), .kernel = kernel};
    const at::Tensor x = noise({kRows, kWidth});
    const at::Tensor weight = noise({64, kernel * kWidth}, 8) / std::sqrt(kernel * kWidth);
    const Inputs inputs{x, weight, at::zeros({64})};
    const Inputs exact = results(inputs, window, true), got = results(inputs, window, false);
    // The same sums as one product of copied rows.
    const at::Tensor rows = reference::windows(x, window).flatten(1);
    at::Tensor plain = at::empty({kRows, 64});
    gemm::multiply({rows}, gemm::Packed({weight, true}), {}, false, plain);
    const double allowed = kernel == 4 || kernel == 7 ? 4 : 2;
    EXPECT_LT(root_mean_square(got.back() - exact.back()),
              allowed * root_mean_square(plain - exact.back()))
        << kernel;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LT(root_mean_square(got[i] - exact[i]), 2e-6 * root_mean_square(exact[i])) << i;
  }
}

TEST(Filtering, PackedSequencesEqualEachSequenceAlone) {
  const OwnProducts own;
  const std::vector<int> bounds{0, 1, 3, 20, 58, 119};
  const at::Tensor x = noise({119, kIn}), weight = noise({kOut, 4 * kIn}, 8);
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t dilation : {1, 3}) {
      const cpu::LevelGuard guard(*level);
      TimeWindow window{.offsets = cases::lengths(bounds), .kernel = 4, .dilation = dilation};
      const at::Tensor together = time_convolution(x, weight, {}, window);
      for (size_t i = 0; i + 1 < bounds.size(); ++i) {
        window.offsets = cases::lengths({0, bounds[i + 1] - bounds[i]});
        EXPECT_TRUE(
            at::equal(together.slice(0, bounds[i], bounds[i + 1]),
                      time_convolution(x.slice(0, bounds[i], bounds[i + 1]), weight, {}, window)))
            << level->name << " sequence " << i;
      }
    }
}

TEST(Filtering, IsForWholeNumbersOfRowsAndFp32) {
  const OwnProducts own;
  const TimeWindow window{.offsets = cases::lengths({0, 9}), .kernel = 3};
  EXPECT_TRUE(is_filtered(window, 64, 64, Compute::kFp32));
  EXPECT_TRUE(is_filtered(window, 64, 64, Compute::kTf32));
  EXPECT_FALSE(is_filtered(window, 64, 64, Compute::kBf16));
  EXPECT_FALSE(is_filtered(window, 64, 64, Compute::kFp16));
  EXPECT_FALSE(is_filtered(window, 16, 64, Compute::kFp32));
  EXPECT_FALSE(is_filtered({.offsets = window.offsets, .kernel = 1}, 64, 64, Compute::kFp32));
  EXPECT_FALSE(
      is_filtered({.offsets = window.offsets, .kernel = 3, .stride = 2}, 64, 64, Compute::kFp32));
}

TEST(Filtering, BatchesWithoutRowsGiveNothingAndNoGradient) {
  const OwnProducts own;
  const at::Tensor weight = noise({kOut, 4 * kIn}, 8).requires_grad_(true);
  for (const std::vector<int>& bounds : {std::vector<int>{0}, std::vector<int>{0, 0, 0}}) {
    const TimeWindow window{.offsets = cases::lengths(bounds), .kernel = 4};
    const at::Tensor x = at::empty({0, kIn}).requires_grad_(true);
    const at::Tensor out = time_convolution(x, weight, {}, window);
    EXPECT_EQ(out.sizes(), at::IntArrayRef({0, kOut}));
    const Inputs slopes = torch::autograd::grad({out.sum()}, {x, weight});
    EXPECT_EQ(slopes[0].sizes(), x.sizes());
    EXPECT_TRUE(at::equal(slopes[1], at::zeros_like(weight)));
  }
}

TEST(Filtering, TilesHoldEachOutputOnceAndAllThatItSees) {
  for (const int64_t dilation : {1, 2, 3}) {
    const TimeWindow window{.offsets = cases::lengths({0, 1, 1, 6, 13}),
                            .kernel = 4,
                            .border = Border::kCausal,
                            .dilation = dilation};
    const at::Tensor seen = reference::seen_rows(window, 13);
    const Tiles tiles = forward_tiles(window);
    std::vector<int> times(13);
    for (int64_t tile = 0; tile < tiles.outputs.size(0); ++tile)
      for (int64_t i = 0; i < 2; ++i) {
        const int row = tiles.outputs[tile][i].item<int>();
        if (row < 0) continue;
        ++times[static_cast<size_t>(row)];
        for (int64_t tap = 0; tap < 4; ++tap) {
          const int want = static_cast<int>(seen[row][tap].item<int64_t>());
          EXPECT_EQ(tiles.inputs[tile][i + tap].item<int>(), want == 13 ? -1 : want);
        }
      }
    EXPECT_EQ(times, std::vector<int>(13, 1));
  }
}

}  // namespace
}  // namespace stretto::kernels
