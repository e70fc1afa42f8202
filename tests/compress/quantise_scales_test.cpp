#include "compress/quantise_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace stretto::compress {
namespace {

using store::QuantFormat;

/// Numbers in a bell-like shape, the same in every run; the first is far out.
std::vector<float> bell(size_t count) {
  std::vector<float> numbers(count);
  uint32_t state = 12345;
  for (float& number : numbers) {
    float sum = 0;
    for (int i = 0; i < 6; ++i) {
      state = state * 1664525 + 1013904223;
      sum += static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F;
    }
    number = sum / 20;
  }
  numbers[0] = 0.15F;
  return numbers;
}

std::vector<QuantFormat> every_format() {
  std::vector<QuantFormat> formats;
  for (const int64_t bits : {2, 3, 4, 6, 8}) {
    formats.push_back({.bits = bits});
    formats.push_back({.bits = bits, .symmetric = false});
  }
  return formats;
}

double largest_error(const std::vector<float>& weights, const ScaleAndZero& choice,
                     const QuantFormat& format) {
  std::vector<int8_t> codes(weights.size());
  round_to_codes(weights, choice, format, codes);
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_GE(codes[i], format.lowest_code());
    EXPECT_LE(codes[i], format.highest());
    const double error = static_cast<double>(weights[i] - weight_of(codes[i], choice));
    largest = std::max(largest, std::abs(error));
  }
  return largest;
}

TEST(QuantScales, SpanningScaleClipsNothing) {
  const auto weights = bell(64);
  for (const auto& format : every_format()) {
    SCOPED_TRACE(store::text_of(format));
    const ScaleAndZero choice = spanning_scale(weights, format);
    EXPECT_EQ(store::float_of_half(store::half_of(choice.scale)), choice.scale);
    const double step = std::abs(static_cast<double>(choice.scale));
    // Half a step, and half a step more where the zero itself was rounded.
    const double most = format.symmetric ? 0.5 : 1;
    EXPECT_LE(largest_error(weights, choice, format), most * step * 1.0001);
  }
}

TEST(QuantScales, TheLargerEndHasTheLongerSide) {
  const QuantFormat two{.bits = 2};
  EXPECT_EQ(spanning_scale(std::vector<float>{1, -0.5F}, two), (ScaleAndZero{-0.5F, 0}));
  EXPECT_EQ(spanning_scale(std::vector<float>{-1, 0.5F}, two), (ScaleAndZero{0.5F, 0}));
  EXPECT_EQ(spanning_scale(std::vector<float>{-1, 1}, two), (ScaleAndZero{1, 0}));
}

TEST(QuantScales, AsymmetricCodesKeepZeroExactly) {
  for (const int64_t bits : {2, 4, 8}) {
    const QuantFormat format{.bits = bits, .symmetric = false};
    const std::vector<float> weights{0, 0.7F, 0.9F, 0.2F};
    const ScaleAndZero choice = spanning_scale(weights, format);
    EXPECT_EQ(choice.zero, format.lowest()) << "all weights are above 0";
    std::vector<int8_t> codes(weights.size());
    round_to_codes(weights, choice, format, codes);
    EXPECT_EQ(weight_of(codes[0], choice), 0);
  }
}

TEST(QuantScales, LeastErrorIsNeverWorseAndGainsWithFewBits) {
  const auto weights = bell(128);
  for (const auto& format : every_format()) {
    SCOPED_TRACE(store::text_of(format));
    const double spanning = squared_error(weights, {}, spanning_scale(weights, format), format);
    const double least = squared_error(weights, {}, least_error_scale(weights, {}, format), format);
    EXPECT_LE(least, spanning);
    if (format.bits <= 3) {
      EXPECT_LT(least, 0.9 * spanning);
    }
  }
}

TEST(QuantScales, ImportanceMovesTheScaleToWhatCounts) {
  const QuantFormat format{.bits = 2};
  const std::vector<float> weights{0.11F, -0.1F, 0.09F, -0.12F, 1};
  std::vector<float> importance{1, 1, 1, 1, 1e-6F};
  const double equal = squared_error(std::span(weights).first(4), {},
                                     least_error_scale(weights, {}, format), format);
  const double weighed = squared_error(std::span(weights).first(4), {},
                                       least_error_scale(weights, importance, format), format);
  EXPECT_LT(weighed, 0.5 * equal);
}

TEST(QuantScales, NothingButZerosHasTheScaleZero) {
  for (const auto& format : every_format()) {
    const std::vector<float> weights(8);
    EXPECT_EQ(least_error_scale(weights, {}, format), ScaleAndZero{});
    EXPECT_EQ(largest_error(weights, {}, format), 0);
  }
}

TEST(QuantScales, AreInfiniteForWeightsBeyondFp16AndTinyOnesAreKept) {
  const QuantFormat format{.bits = 8};
  EXPECT_TRUE(std::isinf(spanning_scale(std::vector<float>{1e30F, 1}, format).scale));
  EXPECT_EQ(spanning_scale(std::vector<float>{1e-12F, 0}, format).scale, 0x1p-24F);
}

TEST(QuantScales, CodesAreTheNearest) {
  const QuantFormat format{.bits = 4};
  const ScaleAndZero choice{.scale = 0.5F, .zero = 0};
  const std::vector<float> weights{0.24F, 0.26F, 0.25F, 0.75F, -0.25F, 100, -100};
  std::vector<int8_t> codes(weights.size());
  round_to_codes(weights, choice, format, codes);
  EXPECT_EQ(codes, (std::vector<int8_t>{0, 1, 0, 2, 0, 7, -8})) << "ties go to the even code";
}

}  // namespace
}  // namespace stretto::compress
