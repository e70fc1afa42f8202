// Decoding step by step against the whole sequence.
#include "kernels/convolution/steps.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "kernels/compute.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/filtering.h"
#include "kernels/cpu/table.h"
#include "kernels/gemm/gemm.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int64_t kLanes = 3, kSteps = 9, kChannels = 36, kFilterSets = 2;

/// One causal convolution, whole and step by step; `weights` are those of dynamic convolutions.
struct Stepped {
  std::string name;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weights, const TimeWindow&)>
      whole;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weights, RowCache&)> step;
};

std::vector<Stepped> all_convolutions(int64_t kernel, at::ScalarType type) {
  const at::Tensor weight = noise({40, kernel * kChannels}, 8).to(type);
  const at::Tensor bias = noise({40}, 9).to(type),
                   filters = noise({kFilterSets, kernel}, 10).to(type);
  const PackedConvolution packed(weight, bias, kernel);
  return {
      {"time_convolution",
       [=](const auto& x, const auto&, const auto& window) {
         return time_convolution(x, weight, bias, window);
       },
       [=](const auto& x, const auto&, auto& cache) {
         return time_convolution_step(packed, x, cache);
       }},
      {"light_convolution",
       [=](const auto& x, const auto&, const auto& window) {
         return light_convolution(x, filters, {}, window);
       },
       [=](const auto& x, const auto&, auto& cache) {
         return light_convolution_step(filters, x, cache);
       }},
      {"dynamic_convolution",
       [=](const auto& x, const auto& weights, const auto& window) {
         return dynamic_convolution(x, weights, kFilterSets, {}, window);
       },
       [=](const auto& x, const auto& weights, auto& cache) {
         return dynamic_convolution_step(weights, kFilterSets, x, cache);
       }},
  };
}

/// Lanes whose histories change places: what each step gave, and the last row of each history.
void expect_steps_equal_the_whole(int64_t kernel, int64_t dilation, at::ScalarType type,
                                  bool to_the_bit) {
  const std::vector<std::vector<int64_t>> parents{{0, 1, 2}, {2, 0, 0}, {1, 1, 2}, {0, 2}, {1, 0}};
  for (const Stepped& one : all_convolutions(kernel, type)) {
    SCOPED_TRACE(one.name + " kernel " + std::to_string(kernel) + " dilation " +
                 std::to_string(dilation));
    RowCache cache(kernel, dilation);
    std::vector<std::vector<at::Tensor>> rows(kLanes), weights(kLanes);  // of each lane's history
    for (int64_t t = 0; t < kSteps; ++t) {
      const auto lanes = static_cast<int64_t>(rows.size());
      const at::Tensor x = noise({lanes, kChannels}, 20 + t).to(type);
      const at::Tensor raw = noise({lanes, kFilterSets * kernel}, 40 + t).to(type);
      const at::Tensor got = one.step(x, raw, cache);
      for (int64_t lane = 0; lane < lanes; ++lane) {
        rows[lane].push_back(x[lane]);
        weights[lane].push_back(raw[lane]);
        const TimeWindow window{.offsets = cases::lengths({0, static_cast<int>(t) + 1}),
                                .kernel = kernel,
                                .border = Border::kCausal,
                                .dilation = dilation};
        const at::Tensor want =
            one.whole(at::stack(rows[lane]), at::stack(weights[lane]), window)[t];
        const bool plain = one.name != "time_convolution" ||
                           !is_filtered(window, kChannels, 40, ComputeScope::current());
        EXPECT_TRUE(to_the_bit && plain ? at::equal(got[lane], want)
                                        : at::allclose(got[lane], want, 1e-4, 1e-5))
            << "step " << t << " lane " << lane << ": off by "
            << (got[lane] - want).abs().max().item<double>();
      }
      const std::vector<int64_t>& moved = parents[static_cast<size_t>(t) % parents.size()];
      if (*std::max_element(moved.begin(), moved.end()) >= lanes) continue;  // lanes left before
      cache.reorder(at::tensor(moved, at::kLong));
      const auto old_rows = rows, old_weights = weights;
      rows.clear();
      weights.clear();
      for (const int64_t parent : moved) {
        rows.push_back(old_rows[static_cast<size_t>(parent)]);
        weights.push_back(old_weights[static_cast<size_t>(parent)]);
      }
    }
  }
}

TEST(ConvolutionSteps, EqualTheWholeSequenceForLanesThatMove) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    SCOPED_TRACE(level->name);
    for (const int64_t kernel : {1, 3, 4})
      for (const int64_t dilation : {1, 2}) {
        expect_steps_equal_the_whole(kernel, dilation, at::kFloat, gemm::takes_gathered());
        expect_steps_equal_the_whole(kernel, dilation, at::kDouble, false);
      }
  }
}

TEST(ConvolutionSteps, EqualTheWholeSequenceInHalfPrecision) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kBf16, Compute::kFp16}) {
      const cpu::LevelGuard guard(*level);
      SCOPED_TRACE(level->name);
      const ComputeScope scope(compute);
      if (gemm::takes_gathered()) expect_steps_equal_the_whole(3, 1, at::kFloat, true);
    }
}

TEST(ConvolutionSteps, TheCacheKeepsNoMoreRowsThanTapsSee) {
  RowCache cache(3, 2);
  for (int64_t t = 0; t < 20; ++t) cache.push(noise({4, 5}, 1 + t));
  EXPECT_EQ(cache.rows().sizes(), at::IntArrayRef({5 * 4, 5}));
  EXPECT_EQ(cache.num_pushed(), 20);
  EXPECT_TRUE(at::equal(cache.windows().select(1, 2), noise({4, 5}, 20)));
  EXPECT_TRUE(at::equal(cache.windows().select(1, 0), noise({4, 5}, 16)));
}

TEST(ConvolutionSteps, WhatDoesNotFitIsRefused) {
  const PackedConvolution packed(noise({7, 12}), {}, 3);
  RowCache cache(3), other(2);
  EXPECT_THROW(PackedConvolution(noise({7, 11}), {}, 3), c10::Error);
  EXPECT_THROW(time_convolution_step(packed, noise({2, 5}), cache), c10::Error);
  EXPECT_THROW(time_convolution_step(packed, noise({2, 4}), other), c10::Error);
  time_convolution_step(packed, noise({2, 4}), cache);
  EXPECT_THROW(time_convolution_step(packed, noise({3, 4}), cache), c10::Error);
  EXPECT_THROW(light_convolution_step(noise({2, 4}), noise({2, 4}), cache), c10::Error);
  EXPECT_THROW(RowCache(0), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
